// One step on its lanes: what ran when, from the whole step down to a nanosecond.

const LANE_HEIGHT = 30;
const LANE_NAME = 16;  // the line above a lane that names it
const ZOOM_KEYS = {'+': 2, '=': 2, '-': 0.5, '_': 0.5};

const kindStyle = (kind) => `kind-${kind.replace(/[^a-z]/g, '')}`;

// `timeline`: {lanes, names, kinds, operations: [[lane, name, kind, start, length, bytes]] in
// nanoseconds, lengthNs}. Drawn is what is wide enough to be seen: neighbours of about a
// pixel are one bar.
function timelineChart(timeline, label) {
  const {lanes, names, kinds, operations, lengthNs} = timeline;
  const styles = kinds.map(kindStyle);
  const byLane = lanes.map((_, lane) => operations.filter((operation) => operation[0] === lane));
  const last = d3.max(operations, (operation) => operation[3] + operation[4]) || lengthNs;
  const margin = {left: 8, right: 8, top: 4, bottom: 40};
  const height = margin.top + lanes.length * (LANE_HEIGHT + LANE_NAME) + margin.bottom;
  const deepest = Math.max(1, last / 200);  // zoomed in until 200 ns fill the width

  const place = element('div', {
    class: 'plot timeline', tabindex: 0, role: 'application', 'aria-roledescription': 'zoomable timeline',
    'aria-label': `${label}. Plus and minus zoom, left and right move, N and P go from operation to operation, 0 shows all`});
  const readout = element('output', {class: 'readout'});
  const view = element('p', {class: 'view'});
  let width = 0;
  let selected = -1;
  let transform = d3.zoomIdentity;
  let waiting = false;

  const svg = d3.select(place).append('svg').attr('aria-hidden', 'true').attr('focusable', 'false').attr('height', height);
  const base = d3.scaleLinear([0, last], [0, 1]);
  let x = base;
  const zoom = d3.zoom().scaleExtent([1, deepest])
      .filter((event) => (event.type === 'wheel' ? event.ctrlKey || event.metaKey : !event.button))
      .on('zoom', (event) => {
        transform = event.transform;
        redrawSoon();
      });

  const text = (operation) => {
    const [lane, name, kind, start, length, bytes] = operation;
    return `${names[name]} on ${lanes[lane]}: ${kinds[kind]}${bytes > 0 ? ` of ${formatBytes(bytes)}` : ''}, ` +
        `${formatSeconds(length * 1e-9)}, from ${formatSeconds(start * 1e-9)} to ${formatSeconds((start + length) * 1e-9)}`;
  };
  const select = (index, reveal) => {
    selected = Math.max(0, Math.min(operations.length - 1, index));
    readout.textContent = text(operations[selected]);
    const [, , , start, length] = operations[selected];
    const [left, right] = x.domain();
    if (reveal && (start < left || start + length > right)) {
      zoom.translateTo(d3.select(svg.node()), base(start + length / 2), 0);
    }
    redrawSoon();
  };

  const redrawSoon = () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      redraw();
    });
  };

  // Bars of one lane as {from, to, operation, count} in pixels, those not seen apart as one.
  const bars = (lane) => {
    const found = [];
    const [left, right] = x.domain();
    let at = d3.bisector((operation) => operation[3] + operation[4]).left(byLane[lane], left);
    for (; at < byLane[lane].length && byLane[lane][at][3] <= right; ++at) {
      const operation = byLane[lane][at];
      const from = Math.max(x(operation[3]), margin.left - 2);
      const to = Math.min(x(operation[3] + operation[4]), width - margin.right + 2);
      const before = found[found.length - 1];
      const isNarrow = to - from < 1.5;
      if (before && isNarrow && before.isNarrow && from - before.to < 0.5) {
        before.to = Math.max(before.to, to);
        before.count += 1;
      } else {
        found.push({from, to, operation, count: 1, isNarrow});
      }
    }
    return found;
  };

  const redraw = () => {
    x = transform.rescaleX(base);
    svg.selectAll('*').remove();
    lanes.forEach((name, lane) => {
      const top = margin.top + lane * (LANE_HEIGHT + LANE_NAME);
      svg.append('text').attr('class', 'lane-name').attr('x', margin.left).attr('y', top + LANE_NAME - 4).text(name);
      svg.append('rect').attr('class', 'lane').attr('x', margin.left).attr('y', top + LANE_NAME)
          .attr('width', Math.max(0, width - margin.left - margin.right)).attr('height', LANE_HEIGHT);
      for (const bar of bars(lane)) {
        const [, operationName, kind] = bar.operation;
        const size = Math.max(bar.to - bar.from, 0.7);
        const rect = svg.append('rect').attr('class', `bar ${styles[kind]}`).attr('x', bar.from).attr('width', size)
            .attr('y', top + LANE_NAME + 2).attr('height', LANE_HEIGHT - 4);
        if (size < 3) rect.classed('thin', true);
        if (operations[selected] === bar.operation) rect.classed('selected', true);
        const index = bar.operation.index;
        rect.on('pointerenter click', () => select(index, false));
        const room = Math.floor((size - 8) / 6.7);
        const shown = names[operationName];
        if (bar.count === 1 && room >= 3) {
          svg.append('text').attr('class', `bar-text ${styles[kind]}`).attr('x', bar.from + 4).attr('y', top + LANE_NAME + LANE_HEIGHT / 2 + 4)
              .text(shown.length <= room ? shown : `${shown.slice(0, room - 1)}…`);
        }
      }
    });
    const axis = secondsAxis((x.domain()[1] - x.domain()[0]) * 1e-9);
    const ticks = x.copy().domain(x.domain().map((ns) => ns * 1e-9));
    svg.append('g').attr('class', 'axis').attr('transform', `translate(0,${height - margin.bottom})`)
        .call(d3.axisBottom(ticks).ticks(Math.max(2, width / 110)).tickFormat(axis.format).tickSizeOuter(0));
    svg.append('text').attr('class', 'axis-title').attr('x', width / 2).attr('y', height - 4).attr('text-anchor', 'middle')
        .text(`${axis.unit} from the start of the step`);
    const [left, right] = x.domain();
    view.textContent = `Shown: ${formatSeconds(Math.max(0, left) * 1e-9)} to ${formatSeconds(Math.min(last, right) * 1e-9)} of ${formatSeconds(last * 1e-9)}`;
    place.dataset.view = `${Math.round(left)} ${Math.round(right)}`;
  };

  operations.forEach((operation, index) => { operation.index = index; });
  const target = () => d3.select(svg.node());
  const pan = (share) => target().call(zoom.translateBy, -share * width / transform.k, 0);
  const scale = (factor) => {
    const chosen = operations[selected];
    const [left, right] = x.domain();
    const isSeen = chosen && chosen[3] >= left && chosen[3] <= right;
    target().call(zoom.scaleBy, factor, isSeen ? [x(chosen[3] + Math.min(chosen[4], right - chosen[3]) / 2), 0] : [width / 2, 0]);
  };
  const all = () => target().call(zoom.transform, d3.zoomIdentity);
  place.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const key = event.key;
    if (ZOOM_KEYS[key]) scale(ZOOM_KEYS[key]);
    else if (key === 'ArrowLeft') pan(-0.2);
    else if (key === 'ArrowRight') pan(0.2);
    else if (key === '0' || key === 'Escape') all();
    else if (key === 'Home') select(0, true);
    else if (key === 'End') select(operations.length - 1, true);
    else if (key === 'n' || key === 'N') select(selected + 1, true);
    else if (key === 'p' || key === 'P') select(selected - 1, true);
    else return;
    event.preventDefault();
  });
  svg.call(zoom).on('dblclick.zoom', (event) => scale(event.shiftKey ? 0.25 : 4));
  new ResizeObserver(([entry]) => {
    const now = Math.floor(entry.contentRect.width);
    if (now === width || now === 0) return;
    width = now;
    base.range([margin.left, width - margin.right]);
    svg.attr('width', width).attr('viewBox', `0 0 ${width} ${height}`);
    zoom.extent([[0, 0], [width, height]]).translateExtent([[0, 0], [width, height]]);
    all();
    redraw();
  }).observe(place);

  const button = (sign, name, act) => element('button', {type: 'button', 'aria-label': name, title: name, onclick: act}, sign);
  const controls = element('div', {class: 'controls', role: 'group', 'aria-label': 'Zoom of the timeline'},
      button('+', 'Zoom in', () => scale(2)), button('−', 'Zoom out', () => scale(0.5)),
      button('←', 'Earlier', () => pan(-0.5)), button('→', 'Later', () => pan(0.5)), button('All', 'All of the step', all), view);
  readout.textContent = 'Point at an operation, or press N, to read what it is.';
  return element('div', {class: 'figure'}, controls, place, readout);
}
