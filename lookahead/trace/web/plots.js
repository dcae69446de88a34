// ---- The timeline ----

const plots = { tokens: id("tokens"), times: id("times") };

/** Average the columns of all steps over as many bins as there are pixels. */
function binned(columns, bins) {
  const count = columns[0].length, width = Math.min(bins, count);
  return columns.map((column) => {
    const found = new Float64Array(width);
    for (let bin = 0; bin < width; bin++) {
      const from = Math.floor(bin * count / width), to = Math.max(from + 1, Math.floor((bin + 1) * count / width));
      for (let at = from; at < to; at++) found[bin] += column[at] / (to - from);
    }
    return found;
  });
}

/** Draw stacked bars, those of `behind` under the others; `most` gives the height of the plot. */
function draw(canvas, columns, colours, behind, most) {
  const scale = window.devicePixelRatio || 1, width = canvas.clientWidth, bottom = canvas.clientHeight;
  canvas.width = width * scale;
  canvas.height = bottom * scale;
  const pen = canvas.getContext("2d");
  pen.scale(scale, scale);
  const bars = binned(behind ? [...columns, behind] : columns, Math.floor(width)), bins = bars[0].length;
  const under = behind ? bars.pop() : null, unit = (bottom - 4) / (most(bars, under) || 1);
  for (let bin = 0; bin < bins; bin++) {
    const left = bin * width / bins, wide = Math.max(1, width / bins - (width / bins > 4 ? 1 : 0));
    let top = bottom;
    if (under) {
      pen.fillStyle = colours[bars.length];
      pen.fillRect(left, top - under[bin] * unit, wide, under[bin] * unit);
    }
    bars.forEach((bar, at) => {
      const size = bar[bin] * unit;
      pen.fillStyle = colours[at];
      pen.fillRect(left, top - size, wide, size);
      top -= size;
    });
  }
}

const height = (bars, at) => bars.reduce((sum, bar) => sum + bar[at], 0);
const coloured = (element) => getComputedStyle(element).color;

function drawAll() {
  if (!row.count) return;
  const { steps } = row;
  const bySource = names.map(() => new Float64Array(steps.emitted.length));
  for (let token = 0; token < row.count; token++) bySource[row.source[token]][row.step[token]]++;
  const inks = [...document.querySelectorAll("#sources .ink")].map(coloured);
  const possible = steps.drafted.map((count) => count + 1);
  const [refused, ...swatches] = [...document.querySelectorAll("figcaption .swatch")].map(coloured);
  const tallest = (bars) => bars[0].reduce((most, _, at) => Math.max(most, height(bars, at)), 0);
  draw(plots.tokens, bySource, [...inks, refused], possible, tallest);
  const parts = [1, 0, 2].map((part) => steps.times.map((times) => times[part]));
  draw(plots.times, parts, swatches, null, (bars) => (bars[0].length > 1 ? tallest(bars.map((bar) => bar.slice(1))) : tallest(bars)));
}

function describePlots() {
  const { steps } = row, totals = steps.times.map((times) => times.reduce((sum, one) => sum + one, 0));
  const most = steps.emitted.reduce((one, other) => Math.max(one, other), 0);
  const slowest = totals.slice(1).reduce((one, other) => Math.max(one, other), 0);
  id("most").textContent = `most: ${number(most)}`;
  id("slowest").textContent = totals.length ? `the first, over the prompt: ${duration(totals[0])}; slowest after: ${duration(slowest)}` : "";
  plots.tokens.setAttribute("aria-label", `Tokens of each of ${number(totals.length)} forwards, ${number(most)} at most`);
  plots.times.setAttribute("aria-label", `Time of each forward, ${duration(slowest)} at most after the first`);
  id("step").max = Math.max(1, steps.emitted.length);
}

function showCursor(step) {
  const count = row.steps.emitted.length;
  for (const line of document.querySelectorAll(".cursor")) {
    line.style.display = "block";
    line.style.left = `${100 * (step + 0.5) / count}%`;
  }
  id("step").value = step + 1;
  id("at").textContent = `${number(step + 1)} of ${number(count)}`;
}

const goTo = (step, how) => choose(row.tokens[Math.min(Math.max(step, 0), row.tokens.length - 1)], how);

function stepAt(event) {
  const box = event.currentTarget.getBoundingClientRect(), count = row.steps.emitted.length;
  return Math.min(count - 1, Math.max(0, Math.floor((event.clientX - box.left) / box.width * count)));
}
