// A job whose replicas are pipelines: the parts of its step, its devices over one step, memory.

const STEP_PARTS = [['computation', 'computation', 'part-computation'], ['bubble', 'bubble', 'part-bubble'], ['imbalance', 'imbalance', 'part-imbalance'],
  ['exposed transfers', 'transfers', 'part-transfers'], ['exposed reductions', 'reductions', 'part-reductions'], ['end of the step', 'rest', 'part-rest']];
const PIPELINE_PARTS = {COMPUTATION: 'computation of the devices', BUBBLE: 'the bubble', IMBALANCE: 'stages that are not alike', TRANSFERS: 'transfers between stages', REDUCTIONS: 'reductions of gradients', REST: 'the end of the step'};
const PIPELINE_CHANGES = {COMPUTATION: 'twice as fast', BUBBLE: 'gone', IMBALANCE: 'alike', TRANSFERS: 'free', REDUCTIONS: 'free', REST: 'gone'};
const SCHEDULES = {GPIPE: 'GPipe', ONE_F_ONE_B: '1F1B', INTERLEAVED: 'interleaved', LOOPED_BFS: 'breadth first', ZERO_BUBBLE_1: 'zero bubble 1', ZERO_BUBBLE_V: 'zero bubble V'};

// The parts of a pipeline's mean step, in seconds.
function pipelineParts({pipeline}, step) {
  const of = (share) => step * (share ?? 0);
  return {step, computation: of(1 - (pipeline.idleFraction ?? 0)), bubble: of(pipeline.bubbleFraction), imbalance: of(pipeline.imbalanceFraction),
    transfers: of(pipeline.transferFraction), reductions: of(pipeline.reductionFraction), rest: of(pipeline.restFraction)};
}

// `interleaved, 4 stages of 2 chunks, 16 micro-batches`.
function layoutText({stages, chunks, microBatches, schedule}) {
  return `${SCHEDULES[schedule] ?? schedule}, ${plural(stages ?? 1, 'stage')}${(chunks ?? 1) > 1 ? ` of ${plural(chunks, 'chunk')}` : ''}, ${plural(microBatches ?? 1, 'micro-batch').replace(/hs$/, 'hes')}`;
}

// The devices of `timeline` over its step, a row each; what no bar covers is idle.
function pipelineChart(timeline, label) {
  const rows = timeline.lanes.map((name, lane) => ({name, lane})).filter(({name}) => /^device \d+$/.test(name));
  const readout = element('output', {class: 'readout'}, 'Point at a computation to read what it is.');
  const draw = (svg, width) => {
    const size = Math.max(6, Math.min(26, Math.floor(620 / rows.length)));
    const margin = {left: width < NARROW ? 26 : 70, right: 10, top: 4, bottom: 40};
    const height = margin.top + rows.length * size + margin.bottom;
    svg.attr('height', height).attr('viewBox', `0 0 ${width} ${height}`);
    const x = d3.scaleLinear([0, timeline.lengthNs], [margin.left, width - margin.right]);
    const named = Math.ceil(12 / size);
    rows.forEach(({name, lane}, row) => {
      const top = margin.top + row * size;
      svg.append('rect').attr('class', 'idle').attr('x', margin.left).attr('width', Math.max(0, width - margin.left - margin.right)).attr('y', top + 0.5).attr('height', size - 1);
      if (row % named === 0)
        svg.append('text').attr('class', 'lane-name').attr('x', margin.left - 6).attr('y', top + size / 2 + 4).attr('text-anchor', 'end').text(width < NARROW ? name.replace('device ', '') : name);
      // Time of the device's own reductions, beside computation or after it.
      for (const [on, , , start, length] of timeline.operations)
        if (timeline.lanes[on] === name.replace('device', 'gradients of')) svg.append('rect').attr('class', 'bar part-reductions').attr('x', x(start)).attr('width', Math.max(0.5, x(start + length) - x(start))).attr('y', top + 0.5).attr('height', size - 1);
      let last = null;
      for (const operation of timeline.operations) {
        const [on, title, kind, start, length] = operation;
        if (on !== lane) continue;
        const [from, to] = [x(start), x(Math.min(start + length, timeline.lengthNs))];
        // Neighbours of one kind that are too narrow to be seen apart are one bar.
        if (last && last.kind === kind && to - from < 1.5 && from - last.to < 0.5) {
          last.to = to;
          last.bar.attr('width', last.to - last.from);
          continue;
        }
        const bar = svg.append('rect').attr('class', `bar ${kindStyle(timeline.kinds[kind])}`).attr('x', from).attr('width', Math.max(to - from, 0.5)).attr('y', top + 0.5).attr('height', size - 1);
        if (to - from < 3) bar.classed('thin', true);
        bar.on('pointerenter click', () => { readout.textContent = `${timeline.names[title]} on ${name}: ${formatSeconds(length * 1e-9)}, from ${formatSeconds(start * 1e-9)}`; });
        last = {kind, from, to, bar};
      }
    });
    const axis = secondsAxis(timeline.lengthNs * 1e-9);
    svg.append('g').attr('class', 'axis').attr('transform', `translate(0,${height - margin.bottom})`)
        .call(d3.axisBottom(x.copy().domain([0, timeline.lengthNs * 1e-9])).ticks(Math.max(2, width / 110)).tickFormat(axis.format).tickSizeOuter(0));
    svg.append('text').attr('class', 'axis-title').attr('x', (margin.left + width) / 2).attr('y', height - 4).attr('text-anchor', 'middle').text(`${axis.unit} from the start of the step`);
  };
  const figure = plotPlace(label, draw);
  figure.append(readout);
  return figure;
}

const MANY_LANES = 16;

// Lanes of devices, which stand first, where there are many.
function withDevicesOnly(timeline) {
  if (timeline.lanes.length <= MANY_LANES) return timeline;
  const lanes = timeline.lanes.filter((name) => /^device/.test(name));
  return {...timeline, lanes, operations: timeline.operations.filter(([lane]) => lane < lanes.length)};
}

// Parts of a step, devices over it, and what each device holds.
function pipelinePart(subject) {
  const {chosen, timeline} = subject;
  const {pipeline} = chosen;
  if (!pipeline) return missing('this prediction has no pipeline.');
  const workers = workersOf(chosen);
  const step = partsOf(chosen).step;
  const parts = pipelineParts(chosen, step);
  const devices = pipeline.devices ?? [];
  const of = isComparison ? `, ${subject.name}` : '';
  const bars = timeline ? timeline.kinds.filter((_, kind) => timeline.operations.some(([lane, , has]) => has === kind && /^device/.test(timeline.lanes[lane]))) : [];
  const inOrder = ['forward', 'backward', 'backward input', 'backward weight', 'rest'].filter((kind) => bars.includes(kind));
  const reduces = timeline?.lanes.some((name) => /^gradients of/.test(name));
  const memory = devices.some((device) => Number(device.memoryBytes ?? 0) > 0);
  const label = `Devices of one replica over a step${of}`;
  return [
    element('p', {}, `${sentenceCase(layoutText(chosen.scenario.pipeline))}; ${plural(workers, 'replica')}, ${plural(Number(chosen.devices ?? workers), 'device')}. Devices compute for ${formatPercent(1 - (pipeline.idleFraction ?? 0))} of the time; ${bottleneckWithGain(chosen)} would be worth most.`),
    subheading('Devices over one step'),
    ...(timeline ? [legend([...inOrder.map((kind) => ({name: kind === 'rest' ? 'end of the step' : kind, style: kindStyle(kind), shape: 'area'})), ...(reduces ? [{name: 'reductions alone', style: 'part-reductions', shape: 'area'}] : []), {name: 'idle: bubble and waiting', style: 'part-bubble', shape: 'area'}]), pipelineChart(timeline, label)]
      : [missing(subject.missing.timeline)]),
    subheading('What a step is made of'),
    element('div', {class: 'scroll open', tabindex: 0, role: 'region', 'aria-label': `Table: parts of a step${of}`}, element('table', {class: 'step-parts'}, element('caption', {}, `Parts of a step${of}`),
        element('thead', {}, element('tr', {}, ['part', 'a step', 'share'].map((text) => element('th', {scope: 'col'}, text)))),
        element('tbody', {}, STEP_PARTS.map(([name, key, style]) => element('tr', {}, element('th', {scope: 'row'}, element('span', {class: `key ${style}`, 'aria-hidden': 'true'}), name), element('td', {}, formatSeconds(parts[key])), element('td', {}, formatPercent(step ? parts[key] / step : 0))))))),
    subheading('What each device holds'),
    memory ? dotChart({label: `Memory of each device at its peak${of}`, xTitle: 'GiB at its peak', format: formatShort, rows: devices.map((device, i) => ({name: `device ${i}`, value: Number(device.memoryBytes ?? 0) / 2 ** 30, style: subject.style}))})
      : element('p', {class: 'about'}, 'Memory is not known: no operation of the profile says what it keeps (kept_bytes).'),
    numbersTable(`devices${of}`, ['device', 'begins with', 'a micro-batch takes', 'computes', 'chunks in flight', 'memory', 'gradients'],
        devices.map((device, i) => [String(i), (device.firstOperations ?? []).join(', '), formatSeconds(device.microBatchSeconds ?? 0), formatPercent(device.utilization ?? 0), String(device.chunksInFlight ?? 0),
          memory ? formatBytes(Number(device.memoryBytes ?? 0)) : '–', formatBytes(Number(device.gradientBytes ?? 0))])),
  ];
}

function pipelineSection() {
  if (!subjects.some((subject) => subject.isPipeline)) return null;
  return section('pipeline', 'The pipeline', 'One replica, the one that sets the pace: what each device computes when, and what it waits for. The bubble is what equal stages with free transfers would wait.', each(pipelinePart));
}

// Findings of a diagnosis of a pipeline, part by part.
function findingsOf(found, of) {
  return [element('p', {}, `A step takes ${formatSeconds((found.findings ?? []).reduce((sum, part) => sum + (part.seconds ?? 0), 0))}: ${(found.findings ?? []).map((part) => `${formatPercent(part.fraction ?? 0)} ${PIPELINE_PARTS[part.part] ?? part.part}`).join(', ')}.`),
    ...(found.findings ?? []).map((part) => element('p', {class: 'about'}, element('strong', {}, `${sentenceCase(PIPELINE_PARTS[part.part] ?? part.part)}: `), prose(part.text ?? ''),
        part.change ? `; ${CHANGES[part.change] ?? part.change}: ${formatSigned((part.ratio ?? 1) - 1)}.` : '.')),
    numbersTable(`parts of a step, by the diagnosis${of}`, ['part', 'a step', 'share', 'change', 'gain'],
        (found.findings ?? []).map((part) => [PIPELINE_PARTS[part.part] ?? part.part, formatSeconds(part.seconds ?? 0), formatPercent(part.fraction ?? 0), CHANGES[part.change] ?? '–', part.change ? formatSigned((part.ratio ?? 1) - 1) : '–']))];
}
