// The page: replies of the service in the order in which a person asks.

const SERIES = ['series-a', 'series-b'];
const report = JSON.parse(document.getElementById('data').textContent);
const {subjects} = report;
const isComparison = subjects.length > 1;

const RESOURCES = {DOWNLINK: 'downlink of server', UPLINK: 'uplink of server', PARAMETER_SERVER: 'computation of server'};
const HELD_BACK = {SLOWEST_WORKER: 'the slowest worker', HOST: 'hosts of the workers', LATENCY: 'latency of the links', LINK_INSIDE_NODE: 'links inside the node', LINK_BETWEEN_NODES: 'links between nodes'};
const CHANGED = {NO_STRAGGLERS: 'as fast as the best', NO_HOST_WAIT: 'never waited for', NO_LATENCY: 'none'};

function bottleneckOf(prediction) {
  if (prediction.pipeline) return PIPELINE_PARTS[prediction.pipeline.bottleneck] ?? 'unknown';
  if (RESOURCES[prediction.bottleneck]) return `${RESOURCES[prediction.bottleneck]} ${prediction.bottleneckIndex ?? 0}`;
  if (prediction.bottleneckChange === 'NO_STRAGGLERS') return HELD_BACK.SLOWEST_WORKER;
  if (prediction.bottleneckChange === 'NO_HOST_WAIT') return HELD_BACK.HOST;
  if (prediction.bottleneck === 'WORKER') return 'computation of the workers';
  if (prediction.bottleneck === 'COLLECTIVE') return HELD_BACK[prediction.collectives?.bottleneck] ?? HELD_BACK.LINK_BETWEEN_NODES;
  return 'unknown';
}

// Gain by the change of the bottleneck; empty where it was not computed.
function bottleneckGain(prediction) {
  const {pipeline} = prediction;
  if (pipeline) return `${formatSigned(pipeline.bottleneckGain ?? 0)} if ${PIPELINE_CHANGES[pipeline.bottleneck] ?? 'changed'}`;
  if (prediction.bottleneckGain === undefined) return '';
  const percent = 100 * prediction.bottleneckGain;
  const ofServers = prediction.bottleneckChange === 'LINKS_TWICE_AS_FAST' && !prediction.collectives;
  const changed = CHANGED[prediction.bottleneckChange] ?? (ofServers ? 'links twice as fast' : 'twice as fast');
  return `${percent < 0 ? '' : '+'}${percent.toFixed(Math.abs(percent) < 9.5 ? 1 : 0)} % if ${changed}`;
}

function bottleneckWithGain(prediction) {
  const gain = bottleneckGain(prediction);
  return gain ? `${bottleneckOf(prediction)} (${gain})` : bottleneckOf(prediction);
}

function mostUsed(prediction) {
  const name = RESOURCES[prediction.mostUsed] ? `${RESOURCES[prediction.mostUsed]} ${prediction.mostUsedIndex ?? 0}`
    : prediction.mostUsed === 'COLLECTIVE' ? 'collectives' : 'computation of the workers';
  const fraction = d3.max(prediction.utilization || [], (resource) => resource.fraction ?? 0) ?? 0;
  return `most used: ${name}, ${formatPercent(fraction)}`;
}

const workersOf = (prediction) => prediction.scenario.workers ?? 1;
const rateOf = (prediction) => prediction.examplesPerSecond ?? 0;

// Parts of the mean step's time, in seconds: the one that is computed, the one in which something is only sent, and the rest, which is waiting.
function partsOf(prediction) {
  const step = seconds(prediction.stepTime?.mean);
  if (prediction.pipeline) return pipelineParts(prediction, step);
  const collectives = prediction.collectives;
  if (collectives) {
    const exposed = collectives.exposedSeconds ?? 0;
    const waiting = collectives.waitingSeconds ?? 0;
    return {step, computation: Math.max(0, step - exposed - waiting), exposed, waiting};
  }
  const busy = d3.max((prediction.utilization || []).filter((resource) => resource.resource === 'WORKER'), (resource) => resource.fraction ?? 0) ?? 0;
  const exposed = Math.min(step, (prediction.exposedCommunicationFraction ?? 0) * step);
  const computation = Math.min(step - exposed, busy * step);
  return {step, computation, exposed, waiting: Math.max(0, step - exposed - computation)};
}

// Facts on a subject that several sections need.
for (const [i, subject] of subjects.entries()) {
  const {recommendation, prediction} = subject;
  subject.style = SERIES[i];
  subject.feasible = (recommendation?.workers ?? 0) > 0;
  subject.edge = recommendation?.workersEdge;
  subject.chosen = subject.feasible ? recommendation.prediction : recommendation?.nearest?.prediction;
  subject.predictions = [...prediction.predictions];
  // The recommended number may lie between those that were asked about.
  if (subject.chosen && !subject.predictions.some((each) => workersOf(each) === workersOf(subject.chosen))) subject.predictions.push(subject.chosen);
  subject.predictions.sort((a, b) => workersOf(a) - workersOf(b));
  subject.values = subject.predictions.map(workersOf);
  subject.isAllReduce = Boolean(subject.predictions[0].scenario.allReduce);
  subject.isPipeline = Boolean(subject.predictions[0].scenario.pipeline);
  subject.workers = subject.chosen ? workersOf(subject.chosen) : subject.values[subject.values.length - 1];
  subject.chosen ??= subject.predictions.find((each) => workersOf(each) === subject.workers);
  subject.at = (workers) => subject.predictions.find((each) => workersOf(each) === workers);
  subject.knee = d3.greatest(subject.predictions, (each) => rateOf(each) * (each.scalingEfficiency ?? 0));
  subject.name = isComparison ? `${'AB'[i]}: ${subject.label}` : subject.label;
}
const allValues = [...new Set(subjects.flatMap((subject) => subject.values))].sort((a, b) => a - b);
const startAt = subjects[0].workers;

function headline(subject) {
  if (!subject.recommendation) return `What ${plural(d3.max(subject.values), 'worker')} would do`;
  if (!subject.feasible) return 'No number of workers keeps the constraints';
  const servers = subject.asked.constraints?.maxParameterServers ? ` and ${plural(subject.recommendation.parameterServers ?? 1, 'server')}` : '';
  const choice = `${plural(subject.workers, 'worker')}${servers}`;
  const told = EDGES[subject.edge];
  if (told) return told(choice, subject);
  return subject.recommendation.parameterServersEdge === 'AT_LARGEST_ASKED' ? `${choice}, the most servers asked about` : `Use ${choice}`;
}

// Headlines where there was no choice, or where a better one may lie beyond what was asked about.
const EDGES = {
  ONLY_CHOICE: (choice, subject) => `${choice} ${subject.workers === 1 && choice === '1 worker' ? 'does' : 'do'} ${formatNumber(rateOf(subject.chosen))} examples/s`,
  AT_LARGEST_ASKED: (choice) => `${choice}, the largest number asked about`,
  AT_SMALLEST_ASKED: (choice) => `${choice}, the smallest number asked about`,
  ONLY_FEASIBLE: (choice) => `Only ${choice} kept the constraints`,
};

// True if a headline would say more than is known.
const isTold = (subject) => Boolean(subject.feasible && (EDGES[subject.edge] || subject.recommendation.parameterServersEdge === 'AT_LARGEST_ASKED'));
const question = (subject) => (subject.edge === 'ONLY_CHOICE' ? `What would ${subject.label} do with ${plural(subject.workers, 'worker')}?` : `How many workers should ${subject.label} get?`);

// The sentence about more workers than recommended, in the manner of a colleague.
function onMore(subject) {
  const last = subject.predictions[subject.predictions.length - 1];
  const most = workersOf(last);
  if (!subject.feasible) return '';
  if (most <= subject.workers) return subject.edge === 'AT_LARGEST_ASKED' ? 'More may be better still: ask about larger numbers to know.' : '';
  const gain = rateOf(last) / rateOf(subject.chosen);
  const times = formatShort(most / subject.workers);
  if (rateOf(last) < (subject.chosen.simulationInterval?.lower ?? rateOf(subject.chosen)))
    return `Fewer is better: ${most} workers, ${times} times as many, would even do less, ${formatNumber(rateOf(last))} examples/s.`;
  if (gain < 0.75 * most / subject.workers)
    return `Fewer is better: ${most} workers, ${times} times as many, would do only ${formatNumber(gain)} times as much.`;
  return `${most} workers would do ${formatNumber(gain)} times as much.`;
}

const sentenceCase = (text) => `${text[0].toUpperCase()}${text.slice(1)}`;

function tile(name, value, note) {
  return element('div', {class: 'tile'}, element('dt', {}, name), element('dd', {}, element('span', {class: value.length > 11 ? 'value long' : 'value'}, value), note ? element('span', {class: 'note'}, note) : null));
}

function tiles(subject) {
  const {chosen, recommendation} = subject;
  const interval = chosen.confidenceInterval;
  const parts = partsOf(chosen);
  return element('dl', {class: subject.isPipeline ? 'tiles wide' : 'tiles'},
      tile('Throughput', `${formatNumber(rateOf(chosen))}`, `examples/s; mean ${formatInterval(interval)}`),
      tile('Speed-up', `${formatNumber(chosen.speedup ?? 0)}×`, 'over one worker'),
      tile('Efficiency', formatPercent(chosen.scalingEfficiency ?? 0), 'of linear scaling'),
      tile('A step takes', formatSeconds(parts.step), `predicted, on average; ${formatPercent(parts.step ? parts.computation / parts.step : 0)} of it computation`),
      tile('Bottleneck', sentenceCase(bottleneckOf(chosen)), [bottleneckGain(chosen), subject.isPipeline ? '' : mostUsed(chosen)].filter(Boolean).join('; ')),
      subject.isPipeline ? tile('Devices', formatShort(Number(chosen.devices ?? 0)), `${plural(workersOf(chosen), 'replica')} of ${Number(chosen.devices ?? 0) / workersOf(chosen)}`) : null,
      recommendation?.duration ? tile('Time', formatSeconds(seconds(recommendation.duration)), 'for the examples that are left') : null,
      recommendation?.cost !== undefined ? tile('Cost', `${formatNumber(recommendation.cost)} ${recommendation.currencyCode ?? ''}`, 'of the examples that are left') : null);
}

function about(subject) {
  const {profile} = subject;
  return [profile.model && profile.model !== subject.label ? profile.model : '', profile.framework, `${plural((profile.batchSize ?? 1) * (subject.chosen.scenario.pipeline?.microBatches ?? 1), 'example')} a worker and step`,
    subject.isPipeline ? layoutText(subject.chosen.scenario.pipeline) : subject.isAllReduce ? 'gradients meet in all-reduces' : `${plural(subject.chosen.scenario.parameterServers?.servers ?? 1, 'parameter server')}`,
    formatRate(subject.chosen.scenario.bandwidthBytesPerSecond ?? 0), memoryText(subject.chosen.memory)].filter(Boolean).join(' · ');
}

// The memory of one device at the chosen number of workers; nothing where no part of it is known.
function memoryText(memory) {
  if (!memory) return '';
  const parts = [['parameters', memory.parameterBytes], ['gradients', memory.gradientBytes], ['optimizer', memory.optimizerBytes], ['kept for the backward pass', memory.keptBytes]];
  const known = parts.filter(([, bytes]) => Number(bytes ?? 0) > 0).map(([name, bytes]) => `${name} ${formatBytes(Number(bytes))}`);
  return `${memory.keptBytes === undefined ? 'at least ' : ''}${formatBytes(Number(memory.totalBytes ?? 0))} of memory a device: ${known.join(', ')}`;
}

// The service's reason, closed as a sentence.
function whyText(subject) {
  const why = subject.feasible ? subject.recommendation.reason : subject.recommendation?.infeasibleReason ?? subject.missing.recommendation ?? '';
  return why && !/[.!?]$/.test(why) ? `${prose(why)}.` : prose(why);
}

// The job's name and file, when this was made, and how to have the numbers again.
function provenance() {
  const where = ({file, profile}) => [profile.displayName || profile.model, file ? `file ${file}` : profile.name].filter(Boolean).join(', ') || 'a profile sent along';
  const row = (name, value) => element('div', {}, element('dt', {}, name), element('dd', {}, value));
  return element('dl', {class: 'provenance'},
      subjects.map((subject) => row(isComparison ? `Job ${subject.name}` : 'Job', where(subject))),
      report.made ? row('Made', report.made) : null,
      report.command ? row('The same numbers again', element('code', {}, report.command)) : null);
}

// Assumptions of the service, which nobody stated, for the number of workers that is shown.
function assumed(subject) {
  const found = subject.chosen.assumptions ?? [];
  if (!found.length) return null;
  return element('p', {class: 'about'}, element('strong', {}, 'Assumed: '), found.map((one) => prose(one.message ?? `${one.field} ${one.value}`)).join(' '));
}

function answer() {
  const careful = subjects.reduce((count, subject) => count + warningsOf(subject).length, 0);
  const notice = careful ? element('p', {class: 'notice'}, element('strong', {}, 'Read with care: '), `${plural(careful, 'warning')} below, in `, element('a', {href: '#confidence'}, 'How sure this is'), '.') : null;
  if (!isComparison) {
    const [subject] = subjects;
    return element('header', {class: 'answer'},
        element('p', {class: 'kicker'}, question(subject)),
        element('h1', {class: isTold(subject) ? 'told' : false}, `${headline(subject)}.`),
        element('p', {class: 'why'}, whyText(subject), ' ', onMore(subject)),
        tiles(subject), element('p', {class: 'about'}, about(subject)), assumed(subject), provenance(), notice);
  }
  const [a, b] = subjects;
  const shared = allValues.filter((value) => a.at(value) && b.at(value));
  const most = shared[shared.length - 1];
  // With as many workers, where there is such a number: else it would compare the numbers.
  const [ofA, ofB] = most ? [a.at(most), b.at(most)] : [a.chosen, b.chosen];
  const ratio = rateOf(ofB) / rateOf(ofA);
  const sentence = ratio >= 1 ? `B does ${formatNumber(ratio)} times what A does` : `A does ${formatNumber(1 / ratio)} times what B does`;
  return element('header', {class: 'answer'},
      element('p', {class: 'kicker'}, 'Two jobs, side by side'),
      element('h1', {}, `${most ? `With ${plural(most, 'worker')} each, ` : ''}${sentence}.`),
      element('p', {class: 'why'}, `A does ${formatNumber(rateOf(ofA))} and B ${formatNumber(rateOf(ofB))} examples/s. Below each stands by itself.`),
      element('div', {class: 'pair'}, subjects.map((subject) => element('section', {class: `card ${subject.style}`, 'aria-label': subject.name},
          element('h2', {class: 'card-title'}, subject.name), element('p', {class: 'card-answer'}, `${headline(subject)}.`),
          element('p', {class: 'why'}, whyText(subject)),
          tiles(subject), element('p', {class: 'about'}, about(subject)), assumed(subject)))), provenance(), notice);
}

const SHORT = {finds: 'What would help', throughput: 'Throughput', efficiency: 'Efficiency', 'step-time': 'Step time', pipeline: 'Pipeline', diagnosis: 'What holds it back', timeline: 'One step', cost: 'Cost', alternatives: 'Alternatives', confidence: 'How sure', assumptions: 'Assumptions'};

// A section with its title, what it says in a sentence, and its parts.
function section(id, title, sentence, ...parts) {
  return element('section', {id, class: 'part', 'data-short': SHORT[id], 'aria-labelledby': `${id}-title`}, element('h2', {id: `${id}-title`}, title),
      sentence ? element('p', {class: 'lead'}, sentence) : null, ...parts);
}

// The same part of every subject, each below its name where there are two.
function each(part) {
  return subjects.map((subject) => {
    const made = [part(subject)].flat().filter(Boolean);
    return isComparison && made.length ? element('div', {class: 'of-subject'}, element('h3', {class: `subject-name ${subject.style}`}, subject.name), made) : made;
  }).flat();
}

// Below a part's title, or below the name of a subject.
const subheading = (text, below = 0) => element(`h${(isComparison ? 4 : 3) + below}`, {class: `sub-${below}`}, text);

const missing = (why) => element('p', {class: 'missing'}, `Not here: ${why}`);

// The first simulated run from its begin: workers that begin together get faster as they come out of step.
function overTime(subject) {
  const points = subject.chosen.throughputOverTime ?? [];
  if (points.length < 2) return null;
  const values = points.map((point) => Number(point.endSeconds.toPrecision(3)));
  const text = (value) => `until ${formatSeconds(value)}: ${formatNumber(points[values.indexOf(value)].examplesPerSecond ?? 0)} examples/s`;
  const title = `The first run over time, ${plural(workersOf(subject.chosen), 'worker')}`;
  return [subheading(title), lineChart({label: `${title}${isComparison ? `, ${subject.name}` : ''}`, xTitle: 'simulated seconds', yTitle: 'examples/s',
    series: [{name: 'examples/s', style: subject.style, points: points.map((point, i) => ({x: values[i], y: point.examplesPerSecond ?? 0}))}], values, start: values[0], text})];
}

function throughput() {
  const series = subjects.map((subject) => ({
    name: isComparison ? subject.name : 'examples/s', style: subject.style,
    points: subject.predictions.map((prediction) => ({
      x: workersOf(prediction), y: rateOf(prediction), low: prediction.confidenceInterval?.lower, high: prediction.confidenceInterval?.upper,
      runLow: prediction.runInterval?.lower, runHigh: prediction.runInterval?.upper, regimes: (prediction.regimes || []).map((regime) => regime.examplesPerSecond)}))}));
  const ceiling = d3.max(series.flatMap((line) => line.points), (point) => Math.max(point.y, point.runHigh ?? 0)) * 1.12;
  const one = subjects.map((subject) => rateOf(subject.chosen) / (subject.chosen.speedup || 1));
  subjects.forEach((subject, i) => series.push({name: 'linear', style: subject.style, shape: 'dashed', dots: false,
    points: [{x: allValues[0], y: one[i] * allValues[0]}, {x: allValues[allValues.length - 1], y: one[i] * allValues[allValues.length - 1]}]}));
  const rules = subjects.flatMap((subject, i) => {
    if (!subject.recommendation || !subject.at(subject.workers)) return [];
    const letter = isComparison ? `${'AB'[i]}, ` : '';
    const name = !subject.feasible ? 'nearest' : subject.edge === 'ONLY_CHOICE' ? 'asked about' : EDGES[subject.edge] ? 'best of those asked about' : 'recommended';
    const found = [{x: subject.workers, style: subject.style, text: `${letter}${name}: ${subject.workers}`}];
    if (!isComparison && workersOf(subject.knee) !== subject.workers) found.push({x: workersOf(subject.knee), style: 'plain', text: `${subject.knee === subject.predictions[subject.predictions.length - 1] ? 'no knee before' : 'knee:'} ${workersOf(subject.knee)}`});
    return found;
  });
  const text = (value) => subjects.map((subject) => {
    const prediction = subject.at(value);
    if (!prediction) return '';
    return `${isComparison ? `${subject.name}, ` : ''}${plural(value, 'worker')}: ${formatNumber(rateOf(prediction))} examples/s, mean ${formatInterval(prediction.confidenceInterval)}, ` +
        `95 % of runs ${formatInterval(prediction.runInterval)}; ${formatNumber(prediction.speedup ?? 0)} times one worker`.replace('95', String(Math.round(100 * (prediction.runInterval?.level ?? 0.95))));
  }).filter(Boolean).join('. ');
  const hasRegimes = subjects.some((subject) => subject.predictions.some((prediction) => prediction.regimes?.length));
  const keys = subjects.flatMap((subject) => [
    {name: isComparison ? subject.name : 'prediction, with the interval of the mean', style: subject.style, shape: 'line'}]);
  const lead = subjects.map((subject) => {
    const best = d3.greatest(subject.predictions, rateOf);
    const about = `${formatNumber(rateOf(best))} examples/s with ${plural(workersOf(best), 'worker')}`;
    return isComparison ? `${subject.name} reaches ${about}` : `The most of the numbers asked about: ${about}`;
  }).join('; ');
  return section('throughput', 'Throughput', `${lead}.`,
      legend([...keys, {name: 'where single runs fall', style: SERIES[0], shape: 'band'}, {name: 'linear scaling', style: SERIES[0], shape: 'dashed'},
        ...(hasRegimes ? [{name: 'two regimes that runs settle at', style: 'plain', shape: 'dot'}] : [])]),
      lineChart({label: 'Examples per second over numbers of workers', yTitle: 'examples/s', series, rules, ceiling, values: allValues, start: startAt, text}),
      each(overTime),
      subjects.map((subject) => numbersTable(`throughput${isComparison ? `, ${subject.name}` : ''}`,
          ['workers', 'examples/s', 'interval of the mean', 'single runs', 'speed-up', 'efficiency', 'bottleneck'],
          subject.predictions.map((prediction) => [String(workersOf(prediction)), formatNumber(rateOf(prediction)), formatInterval(prediction.confidenceInterval),
            formatInterval(prediction.runInterval), formatNumber(prediction.speedup ?? 0), formatPercent(prediction.scalingEfficiency ?? 0), bottleneckWithGain(prediction)]))));
}

// Weak scaling keeps the batch of each worker, strong scaling that of all workers together.
function batchScaling(subject) {
  const title = 'Weak and strong scaling';
  const found = subject.scaling;
  if (!found) return subject.missing.scaling ? [subheading(title), missing(subject.missing.scaling)] : [];
  const speedups = (predictions) => predictions.map((prediction) => ({x: workersOf(prediction), y: prediction.speedup ?? 0}));
  const ofOther = speedups(found.predictions);
  const ofAsked = speedups(subject.predictions);
  const [weak, strong] = found.other === 'weak' ? [ofOther, ofAsked] : [ofAsked, ofOther];
  const last = d3.max([...weak, ...strong], (point) => point.x);
  const at = (points, value) => points.find((point) => point.x === value);
  const told = (points, value) => (at(points, value) ? `${formatNumber(at(points, value).y)} times one worker` : 'not asked');
  const values = [...new Set([...weak, ...strong].map((point) => point.x))].sort((a, b) => a - b);
  const label = `${title}${isComparison ? `, ${subject.name}` : ''}`;
  const batch = found.globalBatch;
  const best = d3.greatest(strong, (point) => point.y);
  const shared = found.other === 'strong' ? found.predictions : subject.predictions;
  const assumptions = shared.flatMap((prediction) => (prediction.assumptions ?? []).filter((one) => one.field?.startsWith('scenario.change'))).slice(-1);
  const cells = (prediction) => (prediction ? [formatNumber(rateOf(prediction)), formatInterval(prediction.confidenceInterval), formatInterval(prediction.runInterval)] : ['–', '–', '–']);
  return [subheading(title),
    element('p', {}, `With weak scaling each worker keeps its batch. With strong scaling all workers share a batch of ${plural(batch, 'example')}, so the numbers of workers are those that divide it: at best ${formatNumber(best.y)} times one worker, with ${plural(best.x, 'worker')}.`),
    ...assumptions.map((one) => element('p', {}, `Assumed: ${one.message}`)),
    legend([{name: 'weak scaling', style: SERIES[0], shape: 'line'}, {name: `strong scaling, ${plural(batch, 'example')} a step`, style: SERIES[1], shape: 'line'}, {name: 'linear', style: 'plain', shape: 'dashed'}]),
    lineChart({label, yTitle: 'speed-up', values, start: subject.workers,
      series: [{style: SERIES[0], points: weak}, {style: SERIES[1], points: strong}, {style: 'plain', shape: 'dashed', dots: false, points: [{x: values[0], y: values[0]}, {x: last, y: last}]}],
      ceiling: 1.15 * d3.max([...weak, ...strong], (point) => point.y),
      text: (value) => `${plural(value, 'worker')}: weak ${told(weak, value)}, strong ${told(strong, value)}`}),
    numbersTable(label.toLowerCase(), ['workers', 'weak: speed-up', 'strong: speed-up', 'strong: examples/s', 'interval of the mean', 'single runs'],
        values.map((value) => [String(value), ...[weak, strong].map((points) => (at(points, value) ? formatNumber(at(points, value).y) : '–')), ...cells(shared.find((prediction) => workersOf(prediction) === value))]))];
}

function efficiency() {
  const least = d3.max(subjects, (subject) => subject.asked?.constraints?.minScalingEfficiency ?? 0);
  const text = (value) => subjects.map((subject) => {
    const prediction = subject.at(value);
    return prediction ? `${isComparison ? `${subject.name}, ` : ''}${plural(value, 'worker')}: ${formatPercent(prediction.scalingEfficiency ?? 0)} of linear scaling` : '';
  }).filter(Boolean).join('. ');
  const lead = subjects.map((subject) => {
    const last = subject.predictions.filter((prediction) => (prediction.scalingEfficiency ?? 0) >= 0.5).pop();
    const who = isComparison ? `${subject.name}: ` : '';
    return last ? `${who}${workersOf(last) === subject.values[subject.values.length - 1] ? 'all numbers asked about are' : `up to ${plural(workersOf(last), 'worker')}`} at least half as efficient as one` : `${who}below half of linear everywhere`;
  }).join('; ');
  return section('efficiency', 'Efficiency', `${sentenceCase(lead)}.`,
      isComparison ? legend(subjects.map((subject) => ({name: subject.name, style: subject.style, shape: 'line'}))) : null,
      lineChart({label: 'Scaling efficiency over numbers of workers', yTitle: 'speed-up over workers', format: (share) => `${Math.round(100 * share)} %`,
        series: subjects.map((subject) => ({style: subject.style, points: subject.predictions.map((prediction) => ({x: workersOf(prediction), y: prediction.scalingEfficiency ?? 0}))})),
        level: least ? {y: least, text: `at least ${formatPercent(least)}`} : {y: 1, text: 'linear'}, ceiling: Math.max(1.04, d3.max(subjects.flatMap((subject) => subject.predictions), (each) => each.scalingEfficiency ?? 0)),
        values: allValues, start: startAt, text}),
      numbersTable('efficiency', ['workers', ...subjects.map((subject) => (isComparison ? subject.name : 'efficiency'))],
          allValues.map((value) => [String(value), ...subjects.map((subject) => (subject.at(value) ? formatPercent(subject.at(value).scalingEfficiency ?? 0) : '–'))])),
      each(batchScaling));
}

// A gain of a share, and whether its interval tells it from none.
const gainOf = (name, gain, interval, rest) => ({name, gain, sure: !interval || interval.lower > 0 || interval.upper < 0, interval, ...rest});

// Everything that was tried to make the job faster with as many workers, by what it is worth. The
// best order and buckets are looked for twice, by themselves and as one of the changes: the better
// counts.
function findsOf(subject) {
  const found = [];
  const add = (find) => {
    const same = found.findIndex((other) => other.name === find.name && other.workers === find.workers);
    if (same < 0) found.push(find);
    else if (find.gain > found[same].gain) found[same] = find;
  };
  const {diagnosis, tuning, orders, otherKind} = subject;
  for (const change of diagnosis?.whatIfs ?? []) {
    const interval = change.ratioInterval && {lower: change.ratioInterval.lower - 1, upper: change.ratioInterval.upper - 1};
    add(gainOf(CHANGES[change.change] ?? change.change, (change.ratio ?? 1) - 1, interval, {part: 'diagnosis', workers: workersOf(diagnosis.prediction), note: change.setting}));
  }
  const tuned = tuning?.strategies.find((strategy) => strategy.method === tuning.chosen);
  if (tuned && tuned.method !== 'AS_RECORDED') add(gainOf(CHANGES.BEST_BUCKETS, tuned.gain ?? 0, tuned.gainInterval, {part: 'alternatives', workers: tuning.workers, note: tuned.setting}));
  const order = orders?.orders.find((each) => each.method === orders.chosen);
  const now = orders?.baselines?.find((each) => each.transferOrder === subject.chosen.scenario.parameterServers?.transferOrder);
  if (order && now?.examplesPerSecond) {
    const [after, before] = [order, now].map((each) => each.confidenceInterval ?? {lower: each.examplesPerSecond, upper: each.examplesPerSecond});
    add(gainOf(CHANGES.BEST_TRANSFER_ORDER, order.examplesPerSecond / now.examplesPerSecond - 1, {lower: after.lower / before.upper - 1, upper: after.upper / before.lower - 1}, {part: 'alternatives', workers: orders.workers, note: METHODS[order.method]}));
  }
  const other = otherKind?.predictions.find((each) => workersOf(each) === subject.workers);
  if (other && subject.at(subject.workers)) {
    const mine = subject.at(subject.workers);
    const [after, before] = [other, mine].map((each) => each.simulationInterval ?? each.confidenceInterval ?? {lower: rateOf(each), upper: rateOf(each)});
    const last = otherKind.predictions.reduce((a, b) => (workersOf(a) > workersOf(b) ? a : b));
    const most = workersOf(last) > subject.workers && subject.at(workersOf(last));
    add(gainOf(subject.isAllReduce ? 'parameter servers instead of all-reduces' : 'all-reduces instead of parameter servers', rateOf(other) / rateOf(mine) - 1,
        {lower: after.lower / before.upper - 1, upper: after.upper / before.lower - 1}, {part: 'alternatives', workers: subject.workers, note: `steps become ${subject.isAllReduce ? 'a' : ''}synchronous, which changes the training` +
        (most ? `; with ${plural(workersOf(last), 'worker')} it would be ${formatSigned(rateOf(last) / rateOf(most) - 1)}` : '')}));
  }
  return found.sort((a, b) => b.gain - a.gain);
}

function finds() {
  return section('finds', 'What would help, the most first', 'Each change by itself, and what it is worth in examples per second; with as many workers as above, unless it says otherwise.',
      each((subject) => {
        const all = findsOf(subject);
        const [helps, rest] = [all.filter((find) => find.sure && find.gain >= 0.0005), all.filter((find) => !find.sure || find.gain < 0.0005)];
        const atAll = helps.every((find) => find.workers === subject.workers);
        const item = (find) => element('li', {}, element('span', {class: 'gain'}, formatSigned(find.gain)), element('span', {},
            element('a', {href: `#${find.part}`}, find.name), atAll && find.workers === subject.workers ? '' : `, with ${plural(find.workers, 'worker')}`, find.note ? `: ${find.note}` : '',
            find.interval && [find.interval.lower, find.interval.upper].some((end) => formatSigned(end) !== formatSigned(find.gain)) ? element('span', {class: 'note'}, ` (${formatSigned(find.interval.lower)} to ${formatSigned(find.interval.upper)})`) : null));
        return [
          helps.length ? element('ol', {class: 'finds'}, helps.map(item)) : element('p', {}, 'Nothing that was tried makes it faster.'),
          rest.length ? element('p', {class: 'about'}, `Would not help, or cannot be told from no change: ${rest.map((find) => `${find.name} (${formatSigned(find.gain)})`).join(', ')}.`) : null];
      }));
}

// The lengths of a step that this page names, each with what it is of; the first is the prediction's.
function stepLengths(subject) {
  const {chosen, diagnosis, timeline, tuning} = subject;
  const predicted = partsOf(chosen).step;
  const rows = [['predicted', workersOf(chosen), predicted, `the mean of all counted steps of ${plural(chosen.replications ?? 1, 'run')}; what this page means by a step`]];
  if (timeline) rows.push(['drawn lane by lane', timeline.workers, timeline.lengthNs * 1e-9, `one step of ${plural(timeline.stepsFound, 'simulated step')} of one worker, the one nearest to the mean`]);
  if (diagnosis?.pathSeconds) rows.push(['on the critical path', workersOf(diagnosis.prediction), diagnosis.pathSeconds, `the path through ${plural(diagnosis.pathSteps ?? 1, 'simulated step')} of all workers, by the step; not an average over runs`]);
  const asNow = tuning?.strategies.find((strategy) => strategy.method === 'AS_RECORDED');
  if (asNow && tuning.workers !== workersOf(chosen)) rows.push(['before another grouping', tuning.workers, asNow.stepSeconds ?? 0, 'predicted, too, with as many workers as a grouping needs to matter']);
  const recorded = diagnosis?.recording?.report;
  if (recorded) {
    const workers = recorded.workers.length;
    rows.push(['recorded', workers, recorded.recordedStepSeconds ?? 0, 'measured, on the machines and links of the recording; what lies between steps is in it']);
    rows.push(['replayed', workers, recorded.replayedStepSeconds ?? 0, 'the recorded times on the recorded waits, without what lies between steps']);
  }
  const differs = rows.some(([, , length]) => formatSeconds(length) !== formatSeconds(predicted));
  if (rows.length === 1) return null;
  if (!differs) return element('p', {class: 'about'}, `Every part of this page shows a step of the same length, ${formatSeconds(predicted)}.`);
  const title = 'Lengths of a step on this page, and why they differ';
  return [subheading(title), element('div', {class: 'scroll open', tabindex: 0, role: 'region', 'aria-label': `Table: ${title}${isComparison ? `, ${subject.name}` : ''}`}, element('table', {class: 'lengths'}, element('caption', {}, title),
      element('thead', {}, element('tr', {}, ['a step', 'workers', 'takes', 'it is'].map((text) => element('th', {scope: 'col'}, text)))),
      element('tbody', {}, rows.map(([name, workers, length, why]) => element('tr', {}, element('th', {scope: 'row'}, name), element('td', {}, String(workers)), element('td', {}, formatSeconds(length)), element('td', {}, why))))))];
}

function stepTime() {
  const most = d3.max(subjects.flatMap((subject) => subject.predictions), (prediction) => partsOf(prediction).step);
  const axis = secondsAxis(most);
  const hasPipelines = subjects.every((subject) => subject.isPipeline);
  const parts = hasPipelines ? STEP_PARTS : [['computation', 'computation', 'part-computation'], ['exposed communication', 'exposed', 'part-exposed'], ['waiting', 'waiting', 'part-waiting']];
  const share = (found, key) => formatPercent(found.step ? (found[key] ?? 0) / found.step : 0);
  const sentence = (prediction) => {
    const found = partsOf(prediction);
    return `${plural(workersOf(prediction), 'worker')}: a step takes ${formatSeconds(found.step)}: ${parts.map(([name, key]) => `${share(found, key)} ${name}`).join(', ')}`;
  };
  const waits = subjects.every((subject) => subject.isAllReduce) ? 'waiting for the slowest worker' : 'waiting for servers and for other workers';
  const lead = hasPipelines ? 'Of the mean device: the step is simulated without its reasons to wait, which come back one by one in this order, each worth what the step grows by.'
    : `Exposed is communication beside which a worker computes nothing; what is left is ${waits}.`;
  return section('step-time', 'Where a step’s time goes', lead,
      legend(parts.map(([name, , style]) => ({name: name === 'waiting' ? waits : name, style, shape: 'area'}))),
      each((subject) => [
        stackChart({label: `Time of a step over numbers of workers${isComparison ? `, ${subject.name}` : ''}`, yTitle: `${axis.unit} a step`, format: axis.format,
          parts: parts.map(([name, key, style]) => ({name, style, of: (i) => partsOf(subject.predictions[i])[key] ?? 0})), values: subject.values, start: subject.workers, text: (i) => sentence(subject.predictions[i])}),
        numbersTable(`where a step’s time goes${isComparison ? `, ${subject.name}` : ''}`, ['workers', 'step, mean', ...parts.map(([name]) => name), 'step, median', '95 % of steps within', '99 %'],
            subject.predictions.map((prediction) => {
              const found = partsOf(prediction);
              return [String(workersOf(prediction)), formatSeconds(found.step), ...parts.map(([, key]) => `${formatSeconds(found[key] ?? 0)} (${share(found, key)})`),
                formatSeconds(seconds(prediction.stepTime?.p50)), formatSeconds(seconds(prediction.stepTime?.p95)), formatSeconds(seconds(prediction.stepTime?.p99))];
            })),
        stepLengths(subject)].flat()));
}

const PATH_KINDS = {COMPUTATION: 'computation', SERVER: 'parameter servers', COMMUNICATION: 'communication', WAITING: 'waiting for the slowest', GAP: 'gaps'};
const CHANGES = {NO_STRAGGLERS: 'no stragglers', LINKS_TWICE_AS_FAST: 'links twice as fast', NO_LATENCY: 'no latency', COMPUTATION_TWICE_AS_FAST: 'computation twice as fast', ONE_WORKER_FEWER: 'one worker fewer', BEST_BUCKETS: 'best buckets', BEST_TRANSFER_ORDER: 'best transfer order', SERVERS_TWICE_AS_FAST: 'servers twice as fast', NO_HOST_WAIT: 'no waiting for hosts',
  EQUAL_STAGES: 'equal stages', FREE_TRANSFERS: 'free transfers', FREE_REDUCTIONS: 'free reductions', NO_STEP_END: 'no end of the step', TWICE_THE_MICRO_BATCHES: 'twice the micro-batches', TWICE_THE_CHUNKS: 'twice the chunks', EAGER_RECEIVES: 'eager receives', DATA_LOADING_TWICE_AS_FAST: 'data loading twice as fast', NO_DATA_WAIT: 'no waiting for data'};

// A critical path in a sentence; `nameOf` a worker.
function pathSentence(found, nameOf) {
  const share = (part) => formatPercent(found.pathSeconds ? part / found.pathSeconds : 0);
  const parts = (found.path || []).map((time) => `${share(time.seconds)} ${PATH_KINDS[time.kind] ?? time.kind}`).join(', ');
  const waited = found.straggler === undefined ? null : found.workers?.[found.straggler]?.waitedForSeconds;
  return `${formatSeconds(found.pathSeconds ?? 0)}: ${parts}${waited ? `; the others wait for ${nameOf(found.straggler)} for ${share(waited)} of it` : ''}`;
}

function operationsTable(title, found) {
  return numbersTable(title, ['operation', 'kind', 'a step'],
      (found.operations || []).map((operation) => [operation.operations.length > 1 ? `${operation.operations[0]} and ${operation.operations.length - 1} more` : operation.operations[0],
        PATH_KINDS[operation.kind] ?? operation.kind, formatSeconds(operation.seconds ?? 0)]));
}

function overlapTable(title, {slowdown, interval, operations}) {
  return numbersTable(title, ['times as long as alone', 'at least', 'at most', 'operations that ran both ways'], [[...[slowdown, interval.lower, interval.upper].map(formatNumber), `${operations}`]]);
}

// Slow-down of collectives while some worker computes.
function contentionTable(title, {slowdown, interval, collectives, computingFraction}) {
  return numbersTable(title, ['times as long as alone', 'at least', 'at most', 'collectives of a step', 'of their time beside computation'], [[...[slowdown, interval.lower, interval.upper].map(formatNumber), `${collectives}`, formatPercent(computingFraction ?? 0)]]);
}

// A recording of several workers: their clocks, and the job replayed as it was recorded.
function recordedJob(subject, recording) {
  const {report} = recording;
  const nameOf = (worker) => report.workers[worker]?.name ?? `worker ${worker}`;
  const beside = (found) => {
    const off = found / report.recordedStepSeconds - 1;
    return Math.abs(off) < 0.0005 ? 'within 0.1 % of the' : `${formatPercent(Math.abs(off))} ${off > 0 ? 'longer' : 'shorter'} than the`;
  };
  const sums = [['of a replayed step workers wait for others', report.waitingSeconds], ['not replayed: between steps', report.betweenStepsSeconds], ['not replayed: unexplained', report.unexplainedSeconds]];
  return [subheading('The job as it was recorded'),
    element('p', {}, `${plural(report.workers.length, 'worker')} recorded ${plural(report.steps ?? 0, 'step')}; the critical path of a recorded step takes ${pathSentence(recording, nameOf)}.`),
    element('p', {}, `Replayed, a step takes ${formatSeconds(report.replayedStepSeconds ?? 0)}, ${beside(report.replayedStepSeconds ?? 0)} recorded ${formatSeconds(report.recordedStepSeconds ?? 0)}` +
        (report.unalignedStepSeconds === undefined ? '.' : `; with the clocks as they were read it would be ${formatSeconds(report.unalignedStepSeconds)}, ${beside(report.unalignedStepSeconds)} recorded.`)),
    numbersTable(`recorded workers${isComparison ? `, ${subject.name}` : ''}`, ['recorded on', 'clock', 'at least', 'at most', 'drift', 'step recorded', 'replayed'],
        report.workers.map((worker) => [worker.name, formatSeconds(Number(worker.clockOffsetNs ?? 0) * 1e-9), ...['leastClockOffsetNs', 'mostClockOffsetNs'].map((bound) => (worker[bound] === undefined ? 'unbounded' : formatSeconds(Number(worker[bound]) * 1e-9))),
          worker.clockDrift === undefined ? 'not known' : `${formatNumber(1e6 * worker.clockDrift)} µs/s`, formatSeconds(worker.recordedStepSeconds ?? 0), formatSeconds(worker.replayedStepSeconds ?? 0)])),
    numbersTable(`replay and recording${isComparison ? `, ${subject.name}` : ''}`, ['what', 'seconds a step'], sums.map(([what, found]) => [what, formatSeconds(found ?? 0)])),
    ...(recording.overlapSlowdown ? [overlapTable(`computation beside collectives${isComparison ? `, ${subject.name}` : ''}`, recording.overlapSlowdown)] : []),
    ...(recording.collectiveSlowdown ? [contentionTable(`collectives beside computation${isComparison ? `, ${subject.name}` : ''}`, recording.collectiveSlowdown)] : []),
    operationsTable(`longest operations of the recorded path${isComparison ? `, ${subject.name}` : ''}`, recording)];
}

function diagnosis() {
  const path = subjects.every((subject) => subject.isPipeline) ? '' : 'The critical path goes back from what ended last to what that waited for the longest, through all workers. ';
  return section('diagnosis', 'What holds it back', `${path}Each change is simulated with the same random choices.`,
      each((subject) => {
        const found = subject.diagnosis;
        if (!found) return missing(subject.missing.diagnosis);
        const workers = workersOf(found.prediction);
        const changes = [...(found.whatIfs || [])].sort((a, b) => (b.ratio ?? 0) - (a.ratio ?? 0));
        const rows = [{name: 'as it is', value: rateOf(found.prediction), low: found.prediction.confidenceInterval?.lower, high: found.prediction.confidenceInterval?.upper, style: 'plain'},
          ...changes.map((change) => ({name: CHANGES[change.change] ?? change.change, value: rateOf(change.prediction), low: change.prediction.confidenceInterval?.lower, high: change.prediction.confidenceInterval?.upper, style: subject.style}))];
        return [
          ...(found.recording ? recordedJob(subject, found.recording) : []),
          subheading(`With ${plural(workers, 'worker')}`),
          ...(subject.isPipeline ? findingsOf(found, isComparison ? `, ${subject.name}` : '')
            : [element('p', {}, `The critical path of a simulated step takes ${pathSentence(found, (worker) => `worker ${worker} (of 0 to ${workers - 1})`)}.`)]),
          dotChart({label: `Examples per second with ${plural(workers, 'worker')}, as it is and with each change`, xTitle: 'examples/s', format: formatShort, rows}),
          numbersTable(`what would help${isComparison ? `, ${subject.name}` : ''}`, ['change', 'examples/s', 'gain', 'interval'],
              changes.map((change) => [CHANGES[change.change] ?? change.change, formatNumber(rateOf(change.prediction)), formatSigned((change.ratio ?? 0) - 1), formatInterval(change.ratioInterval, (ratio) => formatSigned(ratio - 1))])),
          ...(found.whatIfs || []).filter((change) => change.setting || change.groups).map((change) => element('p', {class: 'about'},
              `${CHANGES[change.change] ?? change.change}: ${[change.groups && plural(change.groups.length, 'bucket'), change.setting].filter(Boolean).join('; ')}.`)),
          ...(subject.isPipeline ? [] : [operationsTable(`longest operations of the path${isComparison ? `, ${subject.name}` : ''}`, found)]),
          ...(found.leftOut || []).map((left) => element('p', {class: 'about'}, `Not tried: ${CHANGES[left.change] ?? left.change} (${left.reason}).`))];
      }));
}

function timeline() {
  const kindsOf = (found) => found.kinds.filter((_, kind) => found.operations.some((operation) => operation[2] === kind));
  return section('timeline', 'One step, lane by lane',
      'A step of one worker as it was simulated, the one nearest to the mean. Ctrl and the wheel zoom, dragging moves; on the keyboard + and −, the arrows, N and P.',
      each((subject) => {
        if (!subject.timeline) return missing(subject.missing.timeline);
        const found = subject.isPipeline ? withDevicesOnly(subject.timeline) : subject.timeline;
        const label = `One step of one worker of ${found.workers}${isComparison ? `, ${subject.name}` : ''}`;
        return [
          legend(kindsOf(found).map((kind) => ({name: kind, style: kindStyle(kind), shape: 'area'}))),
          timelineChart(found, label),
          element('p', {class: 'about'}, `Step ${found.step + 1} of the first of ${plural(found.workers, 'worker')}, ${formatSeconds(found.lengthNs * 1e-9)} long; of ${plural(found.stepsFound, 'simulated step')} the nearest to the predicted ${formatSeconds(partsOf(subject.chosen).step)}.` +
              (found.leftOut ? ` ${found.leftOut} operations at its end are left out.` : '')),
          numbersTable(label, ['operation', 'lane', 'kind', 'start', 'length', 'size'],
              found.operations.map(([lane, name, kind, start, length, bytes]) => [found.names[name], found.lanes[lane], found.kinds[kind], formatSeconds(start * 1e-9), formatSeconds(length * 1e-9), bytes > 0 ? formatBytes(bytes) : '–']))];
      }));
}

// Cost of a prediction's machines an hour.
function hourly(prices, scenario) {
  const workers = scenario.workers ?? 1;
  const perNode = scenario.allReduce?.workersPerNode ?? 1;
  const nodes = (scenario.pipeline?.nodesPerReplica ?? 1) > 1 ? workers * scenario.pipeline.nodesPerReplica : Math.ceil(workers / perNode);
  return (prices.workerHour ?? 0) * workers + (prices.parameterServerHour ?? 0) * (scenario.parameterServers?.servers ?? 0) + (prices.nodeHour ?? 0) * nodes;
}

function cost() {
  const priced = subjects.filter((subject) => subject.asked?.prices);
  if (!priced.length) return null;
  const million = (subject, prediction) => hourly(subject.asked.prices, prediction.scenario) / 3600 / rateOf(prediction) * 1e6;
  const currency = priced[0].asked.prices.currencyCode || 'units of money';
  const text = (value) => priced.map((subject) => (subject.at(value) ? `${isComparison ? `${subject.name}, ` : ''}${plural(value, 'worker')}: ${formatNumber(million(subject, subject.at(value)))} ${currency} for a million examples` : '')).filter(Boolean).join('. ');
  const lead = priced.map((subject) => {
    const least = d3.least(subject.predictions, (prediction) => million(subject, prediction));
    return `${isComparison ? `${subject.name}: ` : ''}${plural(workersOf(least), 'worker')} ${workersOf(least) === 1 ? 'is' : 'are'} the cheapest, at ${formatNumber(million(subject, least))} ${currency} for a million examples`;
  }).join('; ');
  return section('cost', 'Cost', `${lead}.`,
      lineChart({label: 'Cost of a million examples over numbers of workers', yTitle: `${currency} for a million examples`,
        series: priced.map((subject) => ({style: subject.style, points: subject.predictions.map((prediction) => ({x: workersOf(prediction), y: million(subject, prediction)}))})),
        rules: priced.filter((subject) => subject.feasible && subject.at(subject.workers)).map((subject) => ({x: subject.workers, style: subject.style, text: `recommended: ${subject.workers}`})), values: allValues, start: startAt, text}),
      priced.map((subject) => numbersTable(`cost${isComparison ? `, ${subject.name}` : ''}`, ['workers', `${currency} an hour`, `${currency} for a million examples`],
          subject.predictions.map((prediction) => [String(workersOf(prediction)), formatNumber(hourly(subject.asked.prices, prediction.scenario)), formatNumber(million(subject, prediction))]))),
      priced.map((subject) => {
        const outcomes = subject.recommendation?.frontierOutcomes || [];
        if (!outcomes.some((outcome) => outcome.cost !== undefined)) return null;
        return numbersTable(`the examples that are left${isComparison ? `, ${subject.name}` : ''}`, ['workers', 'servers', 'time', `cost, ${currency}`, 'keeps the constraints'],
            subject.recommendation.frontier.map((prediction, i) => [String(workersOf(prediction)), String(prediction.scenario.parameterServers?.servers ?? '–'),
              outcomes[i].duration ? formatSeconds(seconds(outcomes[i].duration)) : '–', outcomes[i].cost === undefined ? '–' : formatNumber(outcomes[i].cost), outcomes[i].keepsConstraints ? 'yes' : 'no']));
      }).filter(Boolean));
}

const METHODS = {AS_RECORDED: 'as it is', DDP_BUCKETS: 'PyTorch’s buckets', HOROVOD: 'Horovod’s cycles', MG_WFBP: 'MG-WFBP', LIBRA: 'LIBRA', SEARCH: 'best found by search',
  TIC: 'TIC', TAC: 'TAC', REVERSE: 'reverse graph order', RANDOM: 'a random order', RECORDED: 'as recorded', GRAPH: 'graph order'};

const BASELINES = {RECORDED: 'each step as recorded', GRAPH: 'nothing enforced', RANDOM: 'random each step'};

function orders(subject) {
  const found = subject.orders;
  if (!found) return [subheading('Order of transfers'), missing(subject.missing.orders)];
  const workers = plural(found.workers, 'worker');
  const rows = found.orders.map((order) => ({name: METHODS[order.method], value: order.examplesPerSecond ?? 0, low: order.confidenceInterval?.lower, high: order.confidenceInterval?.upper, style: subject.style, marked: order.method === found.chosen}))
      .concat((found.baselines || []).map((base) => ({name: BASELINES[base.transferOrder], value: base.examplesPerSecond ?? 0,
        low: base.confidenceInterval?.lower, high: base.confidenceInterval?.upper, style: 'plain'})));
  const chosen = found.orders.find((order) => order.method === found.chosen);
  const random = (found.baselines || []).find((base) => base.transferOrder === 'RANDOM');
  const gain = chosen && random ? (chosen.examplesPerSecond ?? 0) / (random.examplesPerSecond || 1) - 1 : 0;
  const apart = chosen && random && ((chosen.confidenceInterval?.lower ?? 0) > (random.confidenceInterval?.upper ?? 0) || (chosen.confidenceInterval?.upper ?? 0) < (random.confidenceInterval?.lower ?? 0));
  const faster = (found.baselines || []).filter((base) => chosen && (base.confidenceInterval?.lower ?? 0) > (chosen.confidenceInterval?.upper ?? Infinity))
      .sort((a, b) => b.examplesPerSecond - a.examplesPerSecond)[0];
  return [subheading('Order of transfers'),
    element('p', {}, `Tensors sent in the order of ${METHODS[found.chosen]} make the shortest step. `,
        apart ? `With ${workers} that does ${formatSigned(gain)} against a random order each step.` : `With ${workers} the throughput cannot be told from that of a random order each step.`,
        faster ? ` It is slower in the long run: ${BASELINES[faster.transferOrder]} makes ${formatPercent(faster.examplesPerSecond / chosen.examplesPerSecond - 1)} more examples/s, so keep that.` : null),
    dotChart({label: `Examples per second with ${workers}, by order of transfers`, xTitle: `examples/s with ${workers}`, format: formatShort, rows}),
    numbersTable(`orders of transfers${isComparison ? `, ${subject.name}` : ''}`, ['order', 'one step of one worker', 'scheduling efficiency', 'examples/s', 'interval'],
        [...found.orders.map((order) => [METHODS[order.method], formatSeconds(Number(order.makespanNs ?? 0) * 1e-9), formatPercent(order.schedulingEfficiency ?? 0), formatNumber(order.examplesPerSecond ?? 0), formatInterval(order.confidenceInterval)]),
          ...rows.filter((row) => row.style === 'plain').map((row) => [row.name, '–', '–', formatNumber(row.value), `${formatNumber(row.low)} to ${formatNumber(row.high)}`])])];
}

// Effect of the chosen grouping, in the numbers of this page.
function tuningSentence(found) {
  const before = found.strategies.find((strategy) => strategy.method === 'AS_RECORDED');
  const chosen = found.strategies.find((strategy) => strategy.method === found.chosen);
  if (!before || !chosen || chosen === before || chosen.noDifference) return prose(found.reason ?? 'no other grouping is better').replace(/\.$/, '');
  return `${METHODS[chosen.method]}${chosen.setting ? ` (${chosen.setting})` : ''} gain ${formatSigned(chosen.gain ?? 0)} (${formatInterval(chosen.gainInterval, formatSigned)}): a step takes ${formatSeconds(chosen.stepSeconds ?? 0)} instead of ` +
      `${formatSeconds(before.stepSeconds ?? 0)}, of which ${formatSeconds(chosen.exposedCommunicationSeconds ?? 0)} instead of ${formatSeconds(before.exposedCommunicationSeconds ?? 0)} are exposed communication`;
}

function tuning(subject) {
  const found = subject.tuning;
  if (!found) return [subheading('Grouping of gradients'), missing(subject.missing.tuning)];
  const workers = plural(found.workers, 'worker');
  const rows = found.strategies.map((strategy) => ({name: METHODS[strategy.method], value: strategy.examplesPerSecond ?? 0, low: strategy.confidenceInterval?.lower, high: strategy.confidenceInterval?.upper, style: subject.style, marked: strategy.method === found.chosen}));
  const axis = secondsAxis(d3.max(found.curve || [], (point) => point.stepSeconds) ?? 1);
  const bound = found.strategies[0]?.lowerBoundSeconds;
  return [subheading('Grouping of gradients'),
    element('p', {}, `With ${workers}: ${tuningSentence(found)}.`),
    dotChart({label: `Examples per second with ${workers}, by grouping of gradients`, xTitle: `examples/s with ${workers}`, format: formatShort, rows}),
    numbersTable(`groupings of gradients${isComparison ? `, ${subject.name}` : ''}`, ['grouping', 'groups', 'step', 'exposed', 'examples/s', 'interval', 'gain', 'to set'],
        found.strategies.map((strategy) => [METHODS[strategy.method], String(strategy.groupCount), formatSeconds(strategy.stepSeconds ?? 0), formatSeconds(strategy.exposedCommunicationSeconds ?? 0), formatNumber(strategy.examplesPerSecond ?? 0),
          formatInterval(strategy.confidenceInterval), strategy.noDifference ? 'none' : formatSigned(strategy.gain ?? 0), strategy.setting || '–'])),
    found.curve?.length > 1 ? [subheading('Step time over the size of PyTorch’s buckets', 1),
      ratioChart({label: 'Step time over the size of buckets', xTitle: 'limit of a bucket', yTitle: `${axis.unit} a step`, xFormat: formatBytes, format: axis.format, style: subject.style,
        points: found.curve.map((point) => ({x: Number(point.capBytes), y: point.stepSeconds})), reference: bound ? {y: bound, text: 'no grouping is faster'} : null}),
      numbersTable(`step time over the size of buckets${isComparison ? `, ${subject.name}` : ''}`, ['limit of a bucket', 'step', 'examples/s', 'interval'],
          found.curve.map((point) => [formatBytes(Number(point.capBytes)), formatSeconds(point.stepSeconds), formatNumber(point.examplesPerSecond ?? 0), formatInterval(point.confidenceInterval)]))] : []].flat();
}

// A ratio to something: 2.5 times what it does, 40 % less than it does.
function comparedText(ratio, what) {
  return ratio >= 1 ? `${formatNumber(ratio)} times what ${what} do` : `${formatPercent(1 - ratio)} less than ${what}`;
}

function otherKind(subject) {
  const title = subject.isAllReduce ? 'Parameter servers instead of all-reduces' : 'All-reduces instead of parameter servers';
  const found = subject.otherKind;
  if (!found) return [subheading(title), missing(subject.missing.otherKind)];
  const other = [...found.predictions].sort((a, b) => workersOf(a) - workersOf(b));
  const values = other.map(workersOf);
  const names = subject.isAllReduce ? ['all-reduces', `${plural(other[0].scenario.parameterServers?.servers ?? 1, 'parameter server')}`] : ['parameter servers', 'all-reduces in a ring'];
  const point = (prediction) => ({x: workersOf(prediction), y: rateOf(prediction), low: prediction.confidenceInterval?.lower, high: prediction.confidenceInterval?.upper});
  const last = other[other.length - 1];
  const compared = [other.find((prediction) => workersOf(prediction) === subject.workers), last].filter((prediction, i, all) => prediction && subject.at(workersOf(prediction)) && all.indexOf(prediction) === i);
  const text = (value) => {
    const there = other.find((prediction) => workersOf(prediction) === value);
    return `${plural(value, 'worker')}: ${names[0]} ${subject.at(value) ? formatNumber(rateOf(subject.at(value))) : '–'}, ${names[1]} ${there ? formatNumber(rateOf(there)) : '–'} examples/s`;
  };
  return [subheading(title),
    element('p', {}, compared.length ? `On the same links ${names[1]} would do ${compared.map((prediction) => `${comparedText(rateOf(prediction) / rateOf(subject.at(workersOf(prediction))), names[0])} with ${plural(workersOf(prediction), 'worker')}`).join(', and ')}. ` : '',
        subject.isAllReduce ? 'Assumed: asynchronous steps, every tensor sent whole.' : 'Assumed: a ring whose messages take 25 µs beside their bytes, gradients grouped as uploaded; steps are then synchronous, which changes the training too.'),
    legend([{name: names[0], style: subject.style, shape: 'line'}, {name: names[1], style: 'series-other', shape: 'line'}]),
    lineChart({label: title, yTitle: 'examples/s', series: [{style: subject.style, points: subject.predictions.map(point)}, {style: 'series-other', points: other.map(point)}], values, start: subject.workers, text}),
    numbersTable(`${title.toLowerCase()}${isComparison ? `, ${subject.name}` : ''}`, ['workers', names[0], names[1], 'interval'],
        other.map((prediction) => [String(workersOf(prediction)), subject.at(workersOf(prediction)) ? formatNumber(rateOf(subject.at(workersOf(prediction)))) : '–', formatNumber(rateOf(prediction)), formatInterval(prediction.confidenceInterval)]))];
}

function alternatives() {
  if (subjects.every((subject) => subject.isPipeline)) return null;
  return section('alternatives', 'What else could be done', 'The same machines and the same model, used in another way.',
      each((subject) => (subject.isPipeline ? [missing('of pipelines layouts are the alternatives: stepcast layout ranks them.')] : [...(subject.isAllReduce ? tuning(subject) : orders(subject)), ...otherKind(subject)])));
}

// Warnings of all predictions, each text once, with the numbers of workers it is about.
function warningsOf(subject) {
  const found = new Map();
  for (const prediction of subject.predictions) {
    for (const warning of prediction.warnings || []) {
      if (!found.has(warning.reason)) found.set(warning.reason, {message: warning.message, workers: []});
      found.get(warning.reason).workers.push(workersOf(prediction));
    }
  }
  return [...found.values()];
}

// 1, 2, 3, 5 as "1–3, 5".
function ranges(counts) {
  const texts = [];
  for (let i = 0; i < counts.length; ++i) {
    const first = counts[i];
    while (i + 1 < counts.length && counts[i + 1] === counts[i] + 1) ++i;
    texts.push(first === counts[i] ? `${first}` : `${first}–${counts[i]}`);
  }
  return texts.join(', ');
}

const MODELS = {QUEUEING: 'queueing network (Lin et al.)', CYNTHIA: 'Cynthia', CYNTHIA_HALVED: 'Cynthia, halved', COARSE_TENSORS: 'coarse tensors (Daydream)', POLLUX: 'Pollux, fitted', NO_OVERLAP: 'no overlap', PALEO: 'Paleo', BUBBLE_FORMULA: 'the bubble formula', LINEAR_SCALING: 'linear scaling', SIMAI: 'SimAI’s sum'};

function models(subject) {
  const found = subject.models;
  if (!found) return [subheading('What simpler models say'), missing(subject.missing.models)];
  const comparisons = found.comparisons.filter((comparison) => comparison.prediction);
  const values = comparisons.map((comparison) => comparison.workers);
  const kinds = [...new Set(comparisons.flatMap((comparison) => (comparison.models || []).filter((model) => model.examplesPerSecond).map((model) => model.model)))];
  const of = (comparison, kind) => (comparison.models || []).find((model) => model.model === kind);
  const series = [{style: subject.style, points: comparisons.map((comparison) => ({x: comparison.workers, y: rateOf(comparison.prediction), low: comparison.prediction.confidenceInterval?.lower, high: comparison.prediction.confidenceInterval?.upper}))},
    ...kinds.map((kind, i) => ({style: `model-${i}`, shape: 'line', points: comparisons.filter((comparison) => of(comparison, kind)?.examplesPerSecond).map((comparison) => ({x: comparison.workers, y: of(comparison, kind).examplesPerSecond}))}))];
  const text = (value) => {
    const comparison = comparisons.find((each) => each.workers === value);
    return `${plural(value, 'worker')}: simulated ${formatNumber(rateOf(comparison.prediction))} examples/s; ` + kinds.filter((kind) => of(comparison, kind)?.examplesPerSecond).map((kind) => `${MODELS[kind] ?? kind} ${formatSigned(of(comparison, kind).relativeDifference ?? 0)}`).join(', ');
  };
  return [subheading('What simpler models say'),
    element('p', {}, 'Formulas that know less of the job. Where they agree the answer does not hang on what only the simulation knows.'),
    legend([{name: 'this simulation', style: subject.style, shape: 'line'}, ...kinds.map((kind, i) => ({name: MODELS[kind] ?? kind, style: `model-${i}`, shape: 'line'}))]),
    lineChart({label: 'Examples per second by several models', yTitle: 'examples/s', series, values, start: subject.workers, text}),
    numbersTable(`simpler models${isComparison ? `, ${subject.name}` : ''}`, ['workers', 'simulated', ...kinds.map((kind) => MODELS[kind] ?? kind)],
        comparisons.map((comparison) => [String(comparison.workers), formatNumber(rateOf(comparison.prediction)),
          ...kinds.map((kind) => (of(comparison, kind)?.examplesPerSecond ? `${formatNumber(of(comparison, kind).examplesPerSecond)} (${formatSigned(of(comparison, kind).relativeDifference ?? 0)})` : '–'))]))];
}

const within = (share) => (share < 0.0005 ? 'less than ±0.1 %' : `±${formatPercent(share)}`);

function confidence() {
  // True: it holds; false: it does not; null: this page cannot know.
  const check = (good, name, text) => {
    const [style, mark, word] = good === null ? ['unknown', '?', 'Not known: '] : good ? ['good', '✓', ''] : ['care', '!', 'Care: '];
    return element('li', {class: style}, element('span', {class: 'mark', 'aria-hidden': 'true'}, mark), element('span', {}, element('strong', {}, `${word}${name}. `), text));
  };
  const half = (interval, value) => (interval && value ? (interval.upper - interval.lower) / 2 / value : 0);
  return section('confidence', 'How sure this is', 'The interval of the mean says where the throughput lies in the long run: the recording is a sample of the job’s steps. That of a single run adds the run’s own chance and the error that predictions of such jobs were measured to have. None covers a recording that is not like the job.',
      each((subject) => {
        const {chosen, predictions} = subject;
        const steady = predictions.filter((prediction) => prediction.steadyState);
        const unsteady = predictions.filter((prediction) => !prediction.steadyState).map(workersOf);
        const mean = half(chosen.confidenceInterval, rateOf(chosen));
        const run = half(chosen.runInterval, rateOf(chosen));
        const split = predictions.filter((prediction) => prediction.regimes?.length);
        const level = Math.round(100 * (chosen.confidenceInterval?.level ?? 0.95));
        const steps = subject.profile.stepCount ?? 1;
        const runs = chosen.replications ?? 1;
        const chance = mean > 0;
        const better = (chosen.halfWidthWithMoreSteps ?? 0) / (rateOf(chosen) || 1);
        const error = chosen.modelError?.fraction;
        const few = d3.min(predictions, (prediction) => prediction.replications ?? 1);
        return [
          element('ul', {class: 'checks'},
              check(chance && (steps > 1 || mean >= 0.05) ? mean < 0.05 : null, 'Mean', chance ? `With ${plural(subject.workers, 'worker')} the throughput of the long run is known to ${within(mean)} (${level} %), from ${plural(steps, 'recorded step')} and ${plural(runs, 'simulated run')}.` +
                (better && better < 0.8 * mean ? ` With 20 more recorded steps it would be ${within(better)}.` : '') : 'Steps are as recorded, and every run repeats them, so its interval says nothing about chance.'),
              chance ? check(steps > 1 || run >= 0.1 ? run < 0.1 : null, 'Single runs', `One run falls within ${within(run)} of it with ${level} %.`) : null,
              check(!unsteady.length, 'Steady state', unsteady.length ? `Throughput had not settled with ${ranges(unsteady)} workers.` : `Throughput had settled with ${steady.length === 1 ? 'the number' : `all ${steady.length} numbers`} of workers.`),
              EDGES[subject.edge] && subject.edge !== 'ONLY_CHOICE' ? check(null, 'Other numbers', `${sentenceCase(headline(subject))}: what lies beyond was not looked at.`) : null,
              check(split.length ? false : few > 1 ? true : null, 'Regimes', split.length ? `Runs settle at two throughputs with ${ranges(split.map(workersOf))} workers: ${split.map((prediction) => `${workersOf(prediction)}: ${prediction.regimes.map((regime) => formatNumber(regime.examplesPerSecond)).join(' or ')} examples/s`).join('; ')}.` : few > 1 ? `All runs of each number of workers, at least ${few}, agree on one throughput.` : 'One run cannot tell whether others settle elsewhere.'),
              check(steps > 1 ? null : false, 'Recording', steps > 1 ? `${plural(steps, 'recorded step')} of ${plural(subject.profile.operationCount ?? 0, 'operation')} to draw from; whether the job’s other steps are like them is not in the recording.` : 'There is one recorded step: how much steps vary is assumed from other jobs, 3 %.'),
              check(null, 'Model', error ? `Predictions of such jobs were off by ${formatPercent(error)} on average (${chosen.modelError.source}); the interval of a single run has that in it. Hold a measured run against it.` : 'What the simulation leaves out is in no interval: hold a measured run against it.'),
              warningsOf(subject).map((warning) => check(false, `With ${ranges(warning.workers)} worker${warning.workers.length === 1 && warning.workers[0] === 1 ? '' : 's'}`, `${sentenceCase(prose(warning.message))}.`))),
          ...models(subject)];
      }));
}

const words = (name) => name.replace(/([a-z])([A-Z])/g, '$1 $2').toLowerCase();
const spoken = (value) => (typeof value === 'string' && /^[A-Z][A-Z_]+$/.test(value) ? value.toLowerCase().replaceAll('_', ' ') : value);

// A message's fields as [name, value], those within others behind their names.
function facts(message, prefix = '') {
  return Object.entries(message ?? {}).flatMap(([key, value]) => {
    const name = prefix ? `${prefix}, ${words(key)}` : words(key);
    if (value !== null && typeof value === 'object' && !Array.isArray(value)) {
      const inner = facts(value, name);
      return inner.length ? inner : [[name, key === 'parsingOverhead' ? 'none' : 'yes']];
    }
    if (Array.isArray(value)) return value.length ? [[name, value.map((item) => (typeof item === 'object' ? facts(item).map(([what, is]) => `${what} ${is}`).join(' ') : item)).join('; ')]] : [];
    if (/bandwidth bytes per second$/.test(name)) return [[name.replace(/ bytes per second$/, ''), formatRate(value)]];
    if (/seconds$/.test(name) && typeof value === 'number') return [[name.replace(/,? seconds$/, ''), formatSeconds(value)]];
    if (key === 'currencyCode') return [[name, value]];
    if (/bytes$/.test(name) && Number.isFinite(Number(value))) return [[name.replace(/,? bytes$/, ''), formatBytes(Number(value))]];
    return [[name, String(spoken(value))]];
  });
}

function assumptions() {
  const columns = subjects.map((subject) => {
    const {workers, parameterServers, allReduce, ...scenario} = subject.chosen.scenario;
    return new Map([
      ['profile', subject.file ?? subject.profile.name ?? 'sent along'], ['model', subject.profile.model ?? '–'], ['recorded by', subject.profile.framework ?? '–'],
      ['batch size', String(subject.profile.batchSize ?? 1)], ['operations', String(subject.profile.operationCount ?? 0)], ['recorded steps', String(subject.profile.stepCount ?? 0)],
      ['workers meet', subject.isAllReduce ? 'in all-reduces' : 'at parameter servers'], ...facts(parameterServers ?? allReduce), ...facts(scenario), ['objective', spoken(subject.asked?.objective ?? '–')], ...facts(subject.asked?.constraints), ...facts(subject.asked?.prices, 'price'),
      ...facts(subject.prediction.options), ['seed', String(subject.prediction.seed ?? 0)], ['digest of the profile', subject.prediction.profileDigest ?? '–'], ['engine', subject.prediction.engineVersion ?? '–']]);
  });
  const names = [...new Set(columns.flatMap((column) => [...column.keys()]))];
  const rows = names.map((name) => {
    const cells = columns.map((column) => column.get(name) ?? '–');
    const differs = new Set(cells).size > 1;
    return element('tr', {class: differs ? 'differs' : false}, element('th', {scope: 'row'}, name, differs ? element('span', {class: 'badge'}, 'differs') : null), cells.map((cell) => element('td', {}, cell)));
  });
  const title = 'Scenario, options and constraints in force';
  return section('assumptions', 'What was assumed', 'Defaults are filled in; the same profile, scenario, seed and engine give the same numbers.',
      each((subject) => {
        const found = subject.chosen.assumptions ?? [];
        return found.length ? numbersTable(`taken for granted${isComparison ? `, ${subject.name}` : ''}`, ['field', 'value', 'why'], found.map((one) => [one.field ?? '', one.value ?? '', one.message ?? ''])) : null;
      }),
      element('div', {class: 'scroll open', tabindex: 0, role: 'region', 'aria-label': `Table: ${title}`}, element('table', {class: 'facts'}, element('caption', {}, title),
          element('thead', {}, element('tr', {}, element('th', {scope: 'col'}, 'what'), subjects.map((subject) => element('th', {scope: 'col'}, isComparison ? subject.name : 'value')))), element('tbody', {}, rows))));
}

function show() {
  const parts = [finds(), throughput(), efficiency(), stepTime(), pipelineSection(), diagnosis(), timeline(), cost(), alternatives(), confidence(), assumptions()].filter(Boolean);
  const links = parts.map((part) => element('li', {}, element('a', {href: `#${part.id}`}, part.dataset.short)));
  const versions = [...new Set(subjects.map((subject) => subject.prediction.engineVersion))].join(', ');
  document.body.append(
      element('a', {class: 'skip', href: '#report'}, 'Skip to the report'),
      element('nav', {'aria-label': 'Parts of the report'}, element('span', {class: 'brand'}, 'Stepcast'), element('ul', {}, links)),
      element('main', {id: 'report', tabindex: -1}, answer(), ...parts),
      element('footer', {}, element('p', {}, `Predicted by Stepcast, engine ${versions}, from a recording of ${plural(Math.max(...subjects.map((subject) => subject.diagnosis?.recording?.report?.workers?.length ?? 1)), 'worker')}; nothing was trained for it. Plots: D3, ISC licence, in this page’s source.`)));
  document.documentElement.dataset.drawn = String(Math.round(performance.now()));
}

show();
