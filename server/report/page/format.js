'use strict';

// Numbers, lengths of time and sizes as people read them, and elements made of them.

// Four significant digits, thousands apart: 679.2, 0.07136, 7,060, 13,409; never an exponent.
function formatNumber(value) {
  if (!Number.isFinite(value)) return '–';
  if (value === 0) return '0';
  const rounded = Number(value.toPrecision(4));
  const magnitude = Math.floor(Math.log10(Math.abs(rounded)));
  if (magnitude >= 3) return Math.round(value).toLocaleString('en-US');
  return rounded.toFixed(Math.min(12, 3 - magnitude));
}

// A sentence of the service, whose numbers have no commas, with those of this page.
function prose(text) {
  return text.replace(/(?<![\w.,-])\d{4,}(?!\w|,\d|\.\d)/g, (digits) => Number(digits).toLocaleString('en-US'));
}

// The same without zeros at the end, for axes.
function formatShort(value) {
  const text = formatNumber(value);
  return text.includes('.') ? text.replace(/\.?0+$/, '') : text;
}

function formatPercent(share) {
  if (Math.abs(share) < 0.0005) return '0 %';
  return `${(100 * share).toFixed(Math.abs(share) < 0.0995 ? 1 : 0)} %`;
}

function formatSigned(share) {
  if (Math.abs(share) < 0.0005) return '0 %';
  return `${share < 0 ? '−' : '+'}${formatPercent(Math.abs(share))}`;
}

const TIME_UNITS = [[86400, 'd'], [3600, 'h'], [60, 'min'], [1, 's'], [1e-3, 'ms'], [1e-6, 'µs'], [1e-9, 'ns']];

function formatSeconds(seconds) {
  if (!Number.isFinite(seconds)) return '–';
  if (seconds === 0) return '0 s';
  for (const [size, unit] of TIME_UNITS) {
    if (Math.abs(seconds) >= size * 0.9995 && (size <= 60 || Math.abs(seconds) >= 2 * size))
      return `${formatNumber(seconds / size)} ${unit}`;
  }
  return `${formatNumber(seconds / 1e-9)} ns`;
}

// A tick's text on an axis on which all have one unit, chosen by the largest.
function secondsAxis(most) {
  const [size, unit] = TIME_UNITS.find(([size]) => size <= 1 && most >= size) || [1e-9, 'ns'];
  return {unit, format: (seconds) => formatShort(seconds / size)};
}

function formatBytes(bytes) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let size = bytes;
  let unit = 0;
  while (size >= 1024 && unit + 1 < units.length) {
    size /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? size : formatShort(size)} ${units[unit]}`;
}

function formatRate(bytesPerSecond) {
  const bits = 8 * bytesPerSecond;
  const [size, unit] = bits >= 1e9 ? [1e9, 'Gbit/s'] : bits >= 1e6 ? [1e6, 'Mbit/s'] : [1, 'bit/s'];
  return `${formatShort(bits / size)} ${unit} (${formatShort(bytesPerSecond / 1e6)} MB/s)`;
}

function formatInterval(interval, format = formatNumber) {
  return interval ? `${format(interval.lower ?? 0)} to ${format(interval.upper ?? 0)}` : '–';
}

function plural(count, word) {
  return `${count.toLocaleString('en-US')} ${word}${count === 1 ? '' : 's'}`;
}

// Proto JSON: a length of time is "0.0713s", a number of 64 bits is a string, and what is at its
// default is not there.
function seconds(duration) {
  return duration ? Number.parseFloat(duration) : 0;
}

// An element with attributes and children; texts stay texts, whatever is in them.
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith('on')) {
      made.addEventListener(key.slice(2), value);
    } else if (value === true) {
      made.setAttribute(key, '');
    } else if (value !== undefined && value !== false && value !== null) {
      made.setAttribute(key, value);
    }
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== ''));
  return made;
}

// The numbers of a plot: `columns` are titles, `rows` texts; the first cell of a row is its header.
// A long table is made when it is opened.
function numbersTable(title, columns, rows) {
  const fill = () => {
    const cells = (row) => row.map((text, i) => element(i === 0 ? 'th' : 'td', i === 0 ? {scope: 'row'} : {}, text));
    return element('table', {},
        element('caption', {}, title),
        element('thead', {}, element('tr', {}, columns.map((text) => element('th', {scope: 'col'}, text)))),
        element('tbody', {}, rows.map((row) => element('tr', {}, cells(row)))));
  };
  const area = element('div', {class: 'scroll', tabindex: 0, role: 'region', 'aria-label': `Table: ${title}`});
  const isLong = rows.length > 100;
  const details = element('details', {class: 'numbers', 'data-long': isLong}, element('summary', {}, `Numbers: ${title}`), area);
  if (!isLong) area.append(fill());
  details.addEventListener('toggle', () => {
    if (details.open && area.childElementCount === 0) area.append(fill());
  });
  return details;
}
