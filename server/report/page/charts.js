// Plots over numbers of workers. Each is drawn anew where its place changes size; colours come from
// the style, so that theme and print need no redrawing.

const CHART_HEIGHT = 340;
const NARROW = 520;

// A place for a plot of `label`, which `draw(svg, width)` fills. With `cursor` it is a slider over
// `cursor.values`: arrow keys and the pointer choose one, `cursor.text(i)` is said, and `draw`
// returns a function that shows where it is.
function plotPlace(label, draw, cursor) {
  const readout = element('output', {class: 'readout'});
  const place = element('div', {class: 'plot'});
  const figure = element('div', {class: 'figure'}, place, cursor ? readout : null);
  let at = cursor ? cursor.start : 0;
  let show = () => {};
  let width = 0;

  const move = (to) => {
    at = Math.max(0, Math.min(cursor.values.length - 1, to));
    place.setAttribute('aria-valuenow', cursor.values[at]);
    place.setAttribute('aria-valuetext', cursor.text(at));
    readout.textContent = cursor.text(at);
    show(at);
  };
  const redraw = () => {
    place.replaceChildren();
    const svg = d3.select(place).append('svg').attr('width', width);
    if (cursor) {
      svg.attr('aria-hidden', 'true').attr('focusable', 'false');
    } else {
      svg.attr('role', 'img').attr('aria-label', label);
    }
    show = draw(svg, width, (x) => move(d3.minIndex(cursor.values, (value) => Math.abs(value - x)))) || (() => {});
    if (cursor) show(at);
  };
  if (cursor) {
    for (const [name, value] of Object.entries({
      role: 'slider', tabindex: 0, 'aria-label': `${label}. Arrow keys choose a number of workers`,
      'aria-valuemin': d3.min(cursor.values), 'aria-valuemax': d3.max(cursor.values)})) {
      place.setAttribute(name, value);
    }
    place.addEventListener('keydown', (event) => {
      const to = {ArrowLeft: at - 1, ArrowDown: at - 1, ArrowRight: at + 1, ArrowUp: at + 1,
        Home: 0, End: cursor.values.length - 1}[event.key];
      if (to === undefined) return;
      event.preventDefault();
      move(to);
    });
    move(at);
  }
  new ResizeObserver(([entry]) => {
    const now = Math.floor(entry.contentRect.width);
    if (now === width || now === 0) return;
    width = now;
    redraw();
  }).observe(place);
  return figure;
}

// The keys of a plot: `entries` are {name, style, shape: line|dashed|area|band|dot|rule}.
function legend(entries) {
  const swatch = ({style, shape}) => {
    const svg = d3.create('svg').attr('width', 22).attr('height', 14).attr('aria-hidden', 'true').attr('class', `swatch ${style}`);
    if (shape === 'area' || shape === 'band') {
      svg.append('rect').attr('class', shape).attr('x', 1).attr('y', 2).attr('width', 20).attr('height', 10);
    } else if (shape === 'dot') {
      svg.append('circle').attr('class', 'dot').attr('cx', 11).attr('cy', 7).attr('r', 5);
    } else {
      svg.append('line').attr('class', shape).attr('x1', 1).attr('x2', 21).attr('y1', 7).attr('y2', 7);
    }
    return svg.node();
  };
  return element('ul', {class: 'legend'}, entries.map((entry) => element('li', {}, swatch(entry), entry.name)));
}

// Ticks at numbers of workers that were predicted, `at` their places: the first, the last, and the
// multiples of the smallest power of two that there is room for.
function workerTicks(values, at) {
  const ROOM = 34;
  const first = values[0];
  const last = values[values.length - 1];
  const apart = (a, b) => Math.abs(at(a) - at(b)) >= ROOM;
  for (let step = 1; step <= 2 * last; step *= 2) {
    const round = values.filter((value) => value % step === 0 && value > first && value < last);
    if (round.some((value, i) => i > 0 && !apart(value, round[i - 1]))) continue;
    const between = round.filter((value) => apart(value, first) && apart(value, last));
    return first === last || !apart(first, last) ? [last] : [first, ...between, last];
  }
  return [first, last];
}

// Values that are marked on a line: all of few, of many those with a tick and `others`.
const MOST_MARKS = 16;
function markedValues(values, ticks, others) {
  return new Set(values.length <= MOST_MARKS ? values : [...ticks, ...others]);
}

// A linear scale over `range` for values that are compared: from 0 where they fill a good part of
// the way from there; else between round numbers, which `broken` says and breakSign shows.
function comparisonScale(values, range, count) {
  const [least, most] = d3.extent(values);
  const broken = least > 0 && most - least > 1e-9 * most && most - least < 0.25 * most;
  const room = broken ? Math.max(0.1 * (most - least), 0.002 * most) : 0;
  const scale = d3.scaleLinear(broken ? [least - room, most + room] : [Math.min(0, least), most || 1], range).nice(count);
  return {scale, broken: broken && scale.domain()[0] > 0};
}

const breakNote = ({scale}, format) => `axis from ${format(scale.domain()[0])}, not 0`;

// Two strokes across the beginning of an axis that does not begin at 0.
function breakSign(svg, x, y, upright) {
  svg.append('path').attr('class', 'break').attr('transform', `translate(${x},${y})${upright ? ' rotate(-90)' : ''}`).attr('d', 'M4,-5l-4,10M9,-5l-4,10');
}

function drawAxes(svg, {x, y, ticks, yTicks, format, width, height, margin, xTitle, yTitle}) {
  svg.append('g').attr('class', 'grid').attr('transform', `translate(${margin.left},0)`)
      .call(d3.axisLeft(y).ticks(yTicks).tickSize(-(width - margin.left - margin.right)).tickFormat(''));
  svg.append('g').attr('class', 'axis').attr('transform', `translate(0,${height - margin.bottom})`)
      .call(d3.axisBottom(x).tickValues(ticks).tickFormat((value) => value).tickSizeOuter(0));
  svg.append('g').attr('class', 'axis').attr('transform', `translate(${margin.left},0)`)
      .call(d3.axisLeft(y).ticks(yTicks).tickFormat(format).tickSizeOuter(0));
  svg.append('text').attr('class', 'axis-title').attr('x', (margin.left + width - margin.right) / 2).attr('y', height - 4)
      .attr('text-anchor', 'middle').text(xTitle);
  svg.append('text').attr('class', 'axis-title').attr('x', 4).attr('y', 14).text(yTitle);
}

// The pointer's place, in numbers of workers.
function followPointer(svg, x, margin, width, height, choose) {
  svg.append('rect').attr('class', 'catch').attr('x', margin.left).attr('y', margin.top)
      .attr('width', Math.max(0, width - margin.left - margin.right)).attr('height', height - margin.top - margin.bottom)
      .on('pointermove click', (event) => choose(x.invert ? x.invert(d3.pointer(event)[0]) : invertBand(x, d3.pointer(event)[0])));
}

function invertBand(x, position) {
  const domain = x.domain();
  return domain[d3.minIndex(domain, (value) => Math.abs(x(value) + x.bandwidth() / 2 - position))];
}

// Lines over numbers of workers, or what else `xTitle` says. `series`: {name, style, shape, points: [{x, y, low, high, runLow,
// runHigh}], dots}; `rules`: {x, text, style} are upright lines; `level`: {y, text} a level one.
// `ceiling`: the most that the vertical axis needs to show, where a line may leave the plot.
function lineChart({label, xTitle = 'workers', yTitle, format = formatShort, series, rules = [], level, ceiling, values, start, text}) {
  const draw = (svg, width, choose) => {
    const height = width < NARROW ? 280 : CHART_HEIGHT;
    const margin = {top: rules.length ? 44 : 26, right: 20, bottom: 44, left: 58};
    svg.attr('height', height).attr('viewBox', `0 0 ${width} ${height}`);
    const [least, most] = d3.extent(values);
    const x = d3.scaleLinear([least === most ? least - 1 : least, most], [margin.left + 8, width - margin.right - 8]);
    const tops = series.flatMap((line) => line.points.map((point) => Math.max(point.y, point.high ?? 0, point.runHigh ?? 0)));
    const y = d3.scaleLinear([0, (ceiling ?? d3.max([...tops, level ? level.y : 0])) * 1.04 || 1], [height - margin.bottom, margin.top]);
    const ticks = workerTicks(values, x);
    const marked = markedValues(values, ticks, rules.map((rule) => rule.x));
    drawAxes(svg, {x, y, ticks, yTicks: width < NARROW ? 5 : 7, format, width, height, margin, xTitle, yTitle});
    const clip = `clip-${lineChart.count = (lineChart.count || 0) + 1}`;
    svg.append('clipPath').attr('id', clip).append('rect').attr('x', margin.left).attr('y', margin.top)
        .attr('width', Math.max(0, width - margin.left - margin.right)).attr('height', height - margin.top - margin.bottom);
    const body = svg.append('g').attr('clip-path', `url(#${clip})`);
    for (const line of series) {
      const group = body.append('g').attr('class', line.style);
      const points = line.points.filter((point) => Number.isFinite(point.y));
      for (const [low, high, name] of [['runLow', 'runHigh', 'run-band'], ['low', 'high', 'band']]) {
        const wide = points.filter((point) => Number.isFinite(point[low]));
        if (wide.length === 0) continue;
        group.append('path').attr('class', name)
            .attr('d', d3.area((point) => x(point.x), (point) => y(point[low]), (point) => y(point[high]))(wide));
        group.selectAll(null).data(wide.filter((point) => marked.has(point.x))).join('line').attr('class', `${name}-whisker`)
            .attr('x1', (point) => x(point.x)).attr('x2', (point) => x(point.x))
            .attr('y1', (point) => y(point[low])).attr('y2', (point) => y(point[high]));
      }
      group.append('path').attr('class', line.shape || 'line').attr('d', d3.line((point) => x(point.x), (point) => y(point.y))(points));
      if (line.dots !== false) {
        group.selectAll(null).data(points.filter((point) => marked.has(point.x))).join('circle').attr('class', 'dot')
            .attr('cx', (point) => x(point.x)).attr('cy', (point) => y(point.y)).attr('r', 3.5);
      }
      for (const point of points) {
        for (const regime of point.regimes || [])
          group.append('path').attr('class', 'regime').attr('transform', `translate(${x(point.x)},${y(regime)})`).attr('d', d3.symbol(d3.symbolDiamond, 46)());
      }
    }
    if (level) {
      body.append('line').attr('class', 'level').attr('x1', margin.left).attr('x2', width - margin.right).attr('y1', y(level.y)).attr('y2', y(level.y));
      svg.append('text').attr('class', 'level-text').attr('x', width - margin.right - 14).attr('y', y(level.y) - 5).attr('text-anchor', 'end').text(level.text);
    }
    rules.forEach((rule, i) => {
      const at = x(rule.x);
      const group = svg.append('g').attr('class', `rule ${rule.style}`);
      group.append('line').attr('x1', at).attr('x2', at).attr('y1', margin.top - 6).attr('y2', height - margin.bottom);
      const end = at > width * 0.66;
      group.append('text').attr('x', at + (end ? 4 : -4)).attr('y', margin.top - 10 - 14 * (i % 2)).attr('text-anchor', end ? 'end' : 'start').text(rule.text);
    });
    followPointer(svg, x, margin, width, height, choose);
    const cursor = svg.append('g').attr('class', 'cursor');
    cursor.append('line').attr('y1', margin.top).attr('y2', height - margin.bottom);
    return (i) => {
      const at = values[i];
      cursor.attr('transform', `translate(${x(at)},0)`).selectAll('circle')
          .data(series.filter((line) => line.dots !== false).map((line) => line.points.find((point) => point.x === at)).filter((point) => point && Number.isFinite(point.y)))
          .join('circle').attr('r', 6).attr('cy', (point) => y(point.y));
    };
  };
  return plotPlace(label, draw, {values, start: Math.max(0, values.indexOf(start)), text: (i) => text(values[i])});
}

// Bars over numbers of workers, each of parts that add up. `parts`: {name, style, of: (i) => size}.
function stackChart({label, yTitle, format, parts, values, start, text}) {
  const draw = (svg, width, choose) => {
    const height = width < NARROW ? 260 : 300;
    const margin = {top: 26, right: 16, bottom: 44, left: 58};
    svg.attr('height', height).attr('viewBox', `0 0 ${width} ${height}`);
    const x = d3.scaleBand(values, [margin.left, width - margin.right]).paddingInner(0.28).paddingOuter(0.14);
    const total = (i) => d3.sum(parts, (part) => part.of(i));
    const y = d3.scaleLinear([0, d3.max(values, (_, i) => total(i)) * 1.04 || 1], [height - margin.bottom, margin.top]);
    drawAxes(svg, {x, y, ticks: workerTicks(values, x), yTicks: width < NARROW ? 4 : 6, format, width, height, margin, xTitle: 'workers', yTitle});
    values.forEach((value, i) => {
      let below = 0;
      for (const part of parts) {
        const size = part.of(i);
        svg.append('rect').attr('class', `${part.style} area`).attr('x', x(value)).attr('width', x.bandwidth())
            .attr('y', y(below + size)).attr('height', Math.max(0, y(below) - y(below + size)));
        below += size;
      }
    });
    const cursor = svg.append('rect').attr('class', 'cursor-box').attr('width', x.bandwidth() + 6).attr('rx', 3);
    followPointer(svg, x, margin, width, height, choose);
    return (i) => cursor.attr('x', x(values[i]) - 3).attr('y', y(total(i)) - 3).attr('height', y(0) - y(total(i)) + 6);
  };
  return plotPlace(label, draw, {values, start: Math.max(0, values.indexOf(start)), text});
}

// A row a choice: a dot with its interval on a common axis. `rows`: {name, value, low, high, style,
// marked}.
function dotChart({label, xTitle, format, rows, reference}) {
  const draw = (svg, width) => {
    const isNarrow = width < NARROW;
    const rowHeight = isNarrow ? 44 : 30;
    const margin = {top: 8, right: 24, bottom: 44, left: isNarrow ? 14 : 190};
    const ends = rows.flatMap((row) => [row.value, row.low ?? row.value, row.high ?? row.value]).concat(reference ? [reference.value] : []);
    const axis = comparisonScale(ends, [margin.left + 8, width - margin.right], isNarrow ? 3 : 6);
    const x = axis.scale;
    margin.bottom += axis.broken ? 16 : 0;
    const height = margin.top + rows.length * rowHeight + margin.bottom;
    svg.attr('height', height).attr('viewBox', `0 0 ${width} ${height}`);
    svg.append('g').attr('class', 'grid').attr('transform', `translate(0,${height - margin.bottom})`)
        .call(d3.axisBottom(x).ticks(isNarrow ? 3 : 6).tickSize(-(height - margin.top - margin.bottom)).tickFormat(''));
    svg.append('g').attr('class', 'axis').attr('transform', `translate(0,${height - margin.bottom})`)
        .call(d3.axisBottom(x).ticks(isNarrow ? 3 : 6).tickFormat(format).tickSizeOuter(0));
    const title = (text, up) => svg.append('text').attr('class', 'axis-title').attr('x', (margin.left + width) / 2).attr('y', height - up).attr('text-anchor', 'middle').text(text);
    title(xTitle, axis.broken ? 20 : 4);
    if (axis.broken) {
      title(breakNote(axis, format), 4);
      breakSign(svg, margin.left + 10, height - margin.bottom);
    }
    if (reference) svg.append('line').attr('class', 'level').attr('x1', x(reference.value)).attr('x2', x(reference.value)).attr('y1', margin.top).attr('y2', height - margin.bottom);
    rows.forEach((row, i) => {
      const y = margin.top + rowHeight * (i + (isNarrow ? 0.72 : 0.5));
      const group = svg.append('g').attr('class', `${row.style}${row.marked ? ' marked' : ''}`);
      group.append('text').attr('class', 'row-name').attr('x', isNarrow ? margin.left : margin.left - 10)
          .attr('y', isNarrow ? y - 14 : y + 4).attr('text-anchor', isNarrow ? 'start' : 'end').text(row.name);
      if (Number.isFinite(row.low)) {
        group.append('line').attr('class', 'whisker').attr('x1', x(row.low)).attr('x2', x(row.high)).attr('y1', y).attr('y2', y);
        for (const end of [row.low, row.high])
          group.append('line').attr('class', 'whisker').attr('x1', x(end)).attr('x2', x(end)).attr('y1', y - 4).attr('y2', y + 4);
      }
      group.append('circle').attr('class', 'dot').attr('cx', x(row.value)).attr('cy', y).attr('r', 5);
    });
  };
  return plotPlace(label, draw);
}

// One line over a quantity whose steps are ratios: sizes of buckets.
function ratioChart({label, xTitle, yTitle, xFormat, format, points, style, reference}) {
  const draw = (svg, width) => {
    const height = 260;
    const margin = {top: 26, right: 20, bottom: 44, left: 58};
    svg.attr('height', height).attr('viewBox', `0 0 ${width} ${height}`);
    const x = d3.scaleLog(d3.extent(points, (point) => point.x), [margin.left + 8, width - margin.right - 8]);
    const axis = comparisonScale([...points.map((point) => point.y), ...(reference ? [reference.y] : [])], [height - margin.bottom, margin.top], 5);
    const y = axis.scale;
    const [first, last] = d3.extent(points, (point) => Math.log2(point.x));
    const decades = d3.range(Math.ceil(first), Math.floor(last) + 1).map((power) => 2 ** power);
    const every = Math.max(1, Math.ceil(decades.length * 62 / (width - margin.left)));
    drawAxes(svg, {x, y, ticks: [], yTicks: 5, format, width, height, margin, xTitle, yTitle: axis.broken ? `${yTitle} (${breakNote(axis, format)})` : yTitle});
    if (axis.broken) breakSign(svg, margin.left, height - margin.bottom - 2, true);
    svg.append('g').attr('class', 'axis').attr('transform', `translate(0,${height - margin.bottom})`)
        .call(d3.axisBottom(x).tickValues(decades.filter((_, i) => i % every === 0)).tickFormat(xFormat).tickSizeOuter(0));
    if (reference) {
      svg.append('line').attr('class', 'level').attr('x1', margin.left).attr('x2', width - margin.right).attr('y1', y(reference.y)).attr('y2', y(reference.y));
      svg.append('text').attr('class', 'level-text').attr('x', width - margin.right - 4).attr('y', y(reference.y) + 16).attr('text-anchor', 'end').text(reference.text);
    }
    const group = svg.append('g').attr('class', style);
    group.append('path').attr('class', 'line').attr('d', d3.line((point) => x(point.x), (point) => y(point.y))(points));
    group.selectAll(null).data(points).join('circle').attr('class', 'dot').attr('r', 3.5).attr('cx', (point) => x(point.x)).attr('cy', (point) => y(point.y));
  };
  return plotPlace(label, draw);
}
