// Looks at a report in headless Chromium, in both themes and at two widths, and prints what it saw as JSON.
//
//   node report_browser.mjs CHROMIUM URL [FOLDER]    with FOLDER: screenshots of each part go there; STEPCAST_LOOKS names the looks
import {readFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import {chromium} from 'playwright-core';

const [executablePath, url, folder] = process.argv.slice(2);
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const PATIENCE = 2000 * Number(process.env.STEPCAST_PATIENCE_SECONDS ?? 60);

const seen = {visits: [], pdfBytes: 0};
// A root without user namespaces has no sandbox; the page is our own.
const browser = await chromium.launch({executablePath, timeout: PATIENCE, args: ['--no-sandbox', '--disable-dev-shm-usage']});

async function findings(page) {
  const result = await page.evaluate(() => axe.run(document, {resultTypes: ['violations']}));
  return result.violations.map(({id, impact, nodes}) => ({id, impact, nodes: nodes.slice(0, 3).map((node) => `${node.target.join(' ')}: ${node.failureSummary}`)}));
}

async function keyboard(page) {
  const timeline = page.locator('.timeline').first();
  if (!(await timeline.count())) return null;
  const view = async () => {
    await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
    return (await timeline.getAttribute('data-view')).split(' ').map(Number);
  };
  const said = () => page.locator('.timeline + .readout').first().textContent();
  await timeline.focus();
  const found = {whole: await view()};
  for (let i = 0; i < 3; ++i) await page.keyboard.press('+');
  found.zoomed = await view();
  await page.keyboard.press('ArrowRight');
  found.moved = await view();
  await page.keyboard.press('-');
  found.wider = await view();
  await page.keyboard.press('0');
  found.all = await view();
  await page.keyboard.press('n');
  found.first = await said();
  await page.keyboard.press('n');
  found.second = await said();
  await page.keyboard.press('p');
  found.back = await said();
  return found;
}

// What a slider over numbers of workers says, key by key.
async function slider(page) {
  const place = page.locator('#throughput [role=slider]').first();
  await place.focus();
  await page.keyboard.press('Home');
  const first = await place.getAttribute('aria-valuetext');
  await page.keyboard.press('ArrowRight');
  return {first, next: await place.getAttribute('aria-valuetext'), now: await place.getAttribute('aria-valuenow')};
}

async function visit(colorScheme, width) {
  const context = await browser.newContext({colorScheme, viewport: {width, height: 900}, deviceScaleFactor: 1});
  const page = await context.newPage();
  // Only a hang ends a wait: a machine may be as busy as it likes.
  page.setDefaultTimeout(600_000);
  const found = {theme: colorScheme, width, console: [], requests: [], refused: []};
  page.on('console', (message) => found.console.push(`${message.type()}: ${message.text()}`));
  page.on('pageerror', (error) => found.console.push(`uncaught: ${error.message}`));
  page.on('request', (request) => found.requests.push(request.url()));
  await page.addInitScript(() => {
    window.refused = [];
    document.addEventListener('securitypolicyviolation', (event) => window.refused.push(`${event.violatedDirective} ${event.blockedURI}`));
  });
  // In the time of the page's own thread, so that other work on the machine does not count.
  const devtools = await context.newCDPSession(page);
  await devtools.send('Performance.enable', {timeDomain: 'threadTicks'});
  await page.goto(url, {timeout: PATIENCE});
  await page.waitForSelector('html[data-drawn]', {timeout: PATIENCE, state: 'attached'});
  found.drawnMs = Number(await page.getAttribute('html', 'data-drawn'));
  // The plots come with the first look at their places.
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  const {metrics} = await devtools.send('Performance.getMetrics');
  const metric = (wanted) => metrics.find(({name}) => name === wanted).value;
  found.work = {layouts: metric('LayoutCount'), styles: metric('RecalcStyleCount'), nodes: metric('Nodes'), ms: Math.round(1000 * metric('TaskDuration'))};
  found.plots = await page.evaluate(() => [...document.querySelectorAll('.plot')].map((plot) => plot.querySelectorAll('path, rect, circle').length));
  found.told = await page.evaluate(() => document.querySelector('h1').classList.contains('told'));
  found.parts = await page.evaluate(() => [...document.querySelectorAll('section.part')].map((part) => part.id));
  found.finds = await page.evaluate(() => [...document.querySelectorAll('.finds li')].map((item) => [item.querySelector('.gain').textContent, item.querySelector('a').textContent]));
  found.marks = await page.evaluate(() => document.querySelectorAll('#throughput .plot circle.dot').length);
  found.checks = await page.evaluate(() => [...document.querySelectorAll('.checks li')].map((item) => [item.className, item.textContent]));
  found.lengths = await page.evaluate(() => [...document.querySelectorAll('.lengths tbody tr')].map((row) => [...row.children].map((cell) => cell.textContent)));
  found.provenance = await page.evaluate(() => [...document.querySelectorAll('.provenance dd')].map((item) => item.textContent));
  // Ticks along the bottom, what is said of the axis, and whether it is drawn broken.
  found.axes = await page.evaluate(() => [...document.querySelectorAll('#diagnosis .plot, #alternatives .plot:not([role=slider])')].map((plot) => ({
    ticks: [...[...plot.querySelectorAll('g.axis')].pop().querySelectorAll('.tick text')].map((tick) => tick.textContent),
    titles: [...plot.querySelectorAll('.axis-title')].map((title) => title.textContent), broken: Boolean(plot.querySelector('.break'))})));
  found.text = await page.evaluate(() => document.body.innerText);
  found.title = await page.title();
  found.answer = await page.locator('h1').textContent();
  found.axe = [];
  await page.evaluate(axe);
  found.axe.push(...await findings(page));
  if (folder) {
    for (const part of await page.locator('header.answer, section.part').all()) {
      const id = await part.getAttribute('id') ?? 'answer';
      await part.screenshot({path: `${folder}/${id}-${colorScheme}-${width}.png`});
    }
    await page.evaluate(() => window.scrollTo(0, 0));
    await page.screenshot({path: `${folder}/page-${colorScheme}-${width}.png`});
  }
  found.slider = await slider(page);
  found.keyboard = await keyboard(page);
  const open = (selector) => page.evaluate((which) => document.querySelectorAll(which).forEach((details) => { details.open = true; }), selector);
  // Thousands of rows are alike, and take axe minutes.
  await open('details:not([data-long])');
  found.axe.push(...await findings(page));
  await open('details');
  await page.waitForFunction(() => [...document.querySelectorAll('details')].every((details) => details.querySelector('tbody')));
  found.wider = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  found.tables = await page.evaluate(() => Object.fromEntries([...document.querySelectorAll('.numbers')].map((details) => [details.querySelector('summary').textContent.replace('Numbers: ', ''),
    [...details.querySelectorAll('tbody tr')].map((row) => [...row.children].map((cell) => cell.textContent))])));
  found.refused = await page.evaluate(() => window.refused);
  found.unsafe = await page.evaluate(() => window.unsafe ?? null);
  if (seen.pdfBytes === 0) {
    const pdf = await page.pdf({format: 'A4', path: folder ? `${folder}/report.pdf` : undefined});
    seen.pdfBytes = pdf.length;
  }
  seen.visits.push(found);
  await context.close();
}

for (const look of (process.env.STEPCAST_LOOKS ?? 'light-1280 light-390 dark-1280 dark-390').split(' ')) {
  const [theme, width] = look.split('-');
  await visit(theme, Number(width));
}
await browser.close();
console.log(JSON.stringify(seen));
