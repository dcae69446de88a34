"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const KNOWN = ["model", "prompt", "output", "prediction", "recycled", "fallback"];
const CHUNK = 400, LONGEST = 2000; // tokens that are drawn together: about, and at most

const id = (name) => document.getElementById(name);
const names = data.sources.map(([name]) => name);
const others = names.filter((name) => !KNOWN.includes(name));
const kinds = names.map((name) => (KNOWN.includes(name) ? name : `other-${others.indexOf(name) % 4}`));
const hidden = new Set(); // sources that are not shown
let row, chosen = -1, kept = false;

/** Make an element; children are nodes or texts, and texts stay texts. */
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

const number = (value) => value.toLocaleString("en");
const tokensOf = (count) => `${number(count)} token${count === 1 ? "" : "s"}`;
const percent = (part, whole) => (whole ? `${(100 * part / whole).toFixed(0)} %` : "-");
const quoted = (text) => JSON.stringify(text);

function duration(microseconds) {
  if (microseconds >= 1e6) return `${(microseconds / 1e6).toFixed(2)} s`;
  return microseconds >= 1e3 ? `${(microseconds / 1e3).toFixed(1)} ms` : `${Math.round(microseconds)} µs`;
}

/** The place of the last entry that is at most `value`, in a sorted list. */
function floor(sorted, value) {
  let low = 0, high = sorted.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (sorted[middle] <= value) low = middle;
    else high = middle - 1;
  }
  return low;
}

function sums(counts) {
  const found = new Int32Array(counts.length);
  for (let at = 1; at < counts.length; at++) found[at] = found[at - 1] + counts[at - 1];
  return found;
}

// ---- One row's columns ----

function opened(given) {
  const { steps, path, nodes, texts } = given, count = texts.length;
  const tokens = sums(steps.emitted), firstNodes = sums(steps.drafted), paths = sums(steps.accepted);
  const node = new Int32Array(count).fill(-1), source = new Uint16Array(count), step = new Int32Array(count);
  for (let at = 0; at < tokens.length; at++) {
    for (let place = 0; place < steps.emitted[at]; place++) {
      const token = tokens[at] + place;
      step[token] = at;
      if (place < steps.accepted[at]) {
        node[token] = firstNodes[at] + path[paths[at] + place];
        source[token] = nodes.source[node[token]];
      }
    }
  }
  const chunks = chunksOf(texts), starts = chunks.map(({ from }) => from);
  return { ...given, count, tokens, firstNodes, paths, node, source, step, chunks, starts };
}

/** Divide the tokens at ends of lines; a token over an end is shown in two parts. */
function chunksOf(texts) {
  const chunks = [];
  let from = 0, skip = 0;
  for (let at = 0; at < texts.length; at++) {
    const size = at - from + 1, end = texts[at].lastIndexOf("\n") + 1;
    if ((size >= CHUNK && end > (at === from ? skip : 0)) || size >= LONGEST) {
      const cut = end && end < texts[at].length ? end : texts[at].length;
      chunks.push({ from, skip, to: at + 1, cut });
      [from, skip] = cut < texts[at].length ? [at, cut] : [at + 1, 0];
    }
  }
  if (from < texts.length) chunks.push({ from, skip, to: texts.length, cut: texts[texts.length - 1].length });
  return chunks;
}

function shownText(chunk, token) {
  const text = row.texts[token];
  return text.slice(token === chunk.from ? chunk.skip : 0, token === chunk.to - 1 ? chunk.cut : text.length);
}

// ---- The text: chunks far from the window are plain text, near ones have an element for each token ----

const watcher = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) (isIntersecting ? enrich : flatten)(target.chunk);
}, { root: id("text"), rootMargin: "800px 0px" });

function showText() {
  watcher.disconnect();
  const box = id("text");
  box.replaceChildren();
  for (const chunk of row.chunks) {
    chunk.element = make("div", { class: "chunk" });
    chunk.element.chunk = chunk;
    flatten(chunk);
    const lines = chunk.element.textContent.split("\n").length;
    chunk.element.style.containIntrinsicSize = `auto ${Math.max(1, lines - 1) * 24}px`;
    box.append(chunk.element);
    watcher.observe(chunk.element);
  }
  if (!row.count) box.append(make("p", { class: "hint" }, "Nothing was emitted."));
  enrichNear(0);
}

function flatten(chunk) {
  if (chunk.rich === false) return;
  let text = "";
  for (let token = chunk.from; token < chunk.to; token++) text += shownText(chunk, token);
  chunk.element.textContent = text;
  chunk.rich = false;
}

function enrich(chunk) {
  if (chunk.rich) return;
  const spans = document.createDocumentFragment();
  for (let token = chunk.from; token < chunk.to; token++) {
    const text = shownText(chunk, token);
    const span = make("span", { class: classes(token, text) }, text);
    span.token = token;
    spans.append(span);
  }
  chunk.element.replaceChildren(spans);
  chunk.rich = true;
}

function classes(token, text) {
  const found = ["token", kinds[row.source[token]]];
  if (token === row.tokens[row.step[token]]) found.push("first");
  if (hidden.has(row.source[token])) found.push("dim");
  if (token === chosen) found.push("chosen");
  if (text.startsWith("\n")) found.push("newline");
  return found.join(" ");
}

const chunkOf = (token) => row.chunks[floor(row.starts, token)];

function enrichNear(token) {
  if (row.count) enrich(chunkOf(token));
}

function spanOf(token) {
  const chunk = chunkOf(token);
  enrich(chunk);
  return chunk.element.childNodes[token - chunk.from];
}

// ---- The chosen token ----

function choose(token, { scroll = false, speak = false } = {}) {
  if (!row.count) return;
  token = Math.min(Math.max(token, 0), row.count - 1);
  if (chosen >= 0 && chunkOf(chosen).rich) spanOf(chosen).classList.remove("chosen");
  chosen = token;
  const span = spanOf(token);
  span.classList.add("chosen");
  if (scroll) span.scrollIntoView({ block: "nearest" });
  showDetails(token);
  showCursor(row.step[token]);
  if (speak) id("said").textContent = `${quoted(row.texts[token])}: ${summary(token)}`;
}

function summary(token) {
  const node = row.node[token], parts = [names[row.source[token]], `step ${number(row.step[token] + 1)}`];
  if (node >= 0) {
    if (row.nodes.length[node] >= 0) parts.push(`match of ${number(row.nodes.length[node])}`);
    parts.push(`probability ${(row.nodes.chance[node] / 1000).toFixed(2)}`);
  }
  return parts.join(" · ");
}

function showDetails(token) {
  const step = row.step[token], node = row.node[token], source = row.source[token], { steps, nodes } = row;
  const facts = [["source", make("span", {}, swatch(source), ` ${names[source]}${node < 0 ? ", not drafted" : ""}`)]];
  if (node >= 0) {
    facts.push(["probability", `${(nodes.chance[node] / 1000).toFixed(3)}, that the draft is right up to here`]);
    if (nodes.length[node] >= 0) facts.push(["match", `${tokensOf(nodes.length[node])} before it`]);
    if (nodes.place[node] >= 0) facts.push(["copied from", `token ${number(nodes.place[node] + 1)} of the ${names[source]}`]);
  }
  facts.push(["step", `${number(step + 1)} of ${number(steps.emitted.length)}, forward ${number(steps.forward[step])}`]);
  facts.push(["drafted", `${tokensOf(steps.drafted[step])}, ${number(steps.accepted[step])} accepted`]);
  facts.push(["emitted", tokensOf(steps.emitted[step])]);
  const [draft, verify, rest] = steps.times[step].map(duration);
  facts.push(["time", `draft ${draft}, verify ${verify}, rest ${rest}`]);
  const list = make("dl", {}, ...facts.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]));
  const title = row.texts[token] === "" ? "a part of the next character" : quoted(row.texts[token]);
  id("details").replaceChildren(
    make("h3", {}, `Token ${number(token + 1)}: `, make("span", { class: "code" }, title)), list, ...origin(node, source), ...tree(step));
}

/** Show the place that a token was copied from, with what stands around it. */
function origin(node, source) {
  let place = node < 0 ? -1 : row.nodes.place[node];
  let texts = new Map([["prompt", row.prompt], ["output", row.texts]]).get(names[source]);
  if (place < 0 || !texts) return [];
  if (names[source] === "prompt" && place >= row.prompt.length) [place, texts] = [place - row.prompt.length, row.texts];
  const before = texts.slice(Math.max(0, place - 12), place).join(""), after = texts.slice(place + 1, place + 9).join("");
  return [make("h4", {}, "The place copied from"), make("p", { class: "code" }, before, make("mark", {}, (texts[place] ?? "").replace("\n", "↵\n")), after)];
}

function tree(step) {
  const first = row.firstNodes[step], count = row.steps.drafted[step];
  if (!count) return [make("h4", {}, "Nothing was drafted in this step.")];
  const taken = new Set(row.path.slice(row.paths[step], row.paths[step] + row.steps.accepted[step]));
  const children = Array.from({ length: count + 1 }, () => []);
  for (let node = 0; node < count; node++) children[row.nodes.parent[first + node] + 1].push(node);
  let left = 400; // nodes that are shown
  function branch(node) {
    const line = make("li", { class: "code" });
    while (node !== undefined && left-- > 0) {
      line.append(treeNode(first + node, taken.has(node)));
      const next = children[node + 1], going = next.find((one) => taken.has(one)) ?? next[0];
      const aside = next.filter((one) => one !== going);
      if (aside.length) line.append(make("ul", {}, ...aside.map(branch)));
      node = going;
    }
    return line;
  }
  const list = make("ul", { class: "tree" }, ...children[0].sort((one, other) => taken.has(other) - taken.has(one)).map(branch));
  const note = left < 0 ? [make("p", { class: "hint" }, `The first 400 of ${number(count)} are shown.`)] : [];
  return [make("h4", {}, "The draft: accepted tokens are bold, branches indented"), list, ...note];
}

function treeNode(node, taken) {
  const { nodes } = row, text = data.pieces[nodes.piece[node]];
  const said = `${names[nodes.source[node]]}, probability ${(nodes.chance[node] / 1000).toFixed(3)}, ${taken ? "accepted" : "not accepted"}`;
  const shown = text.replaceAll("\n", "↵").replaceAll("\t", "→") || "∅";
  return make("span", { class: `token ${kinds[nodes.source[node]]} ${taken ? "taken" : "refused"}`, title: said }, shown);
}

function swatch(source) {
  return make("span", { class: `token ${kinds[source]}`, "aria-hidden": "true" }, "\u00a0abc\u00a0");
}

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

// ---- What stands around, and what people do ----

function tip(event, text) {
  const box = id("tip");
  box.hidden = !text;
  if (!text) return;
  box.textContent = text;
  box.style.left = `${Math.max(4, Math.min(event.clientX + 12, innerWidth - box.offsetWidth - 8))}px`;
  box.style.top = `${event.clientY + 22 + box.offsetHeight > innerHeight ? event.clientY - box.offsetHeight - 10 : event.clientY + 22}px`;
}

function stepTip(step) {
  const { steps } = row, [draft, verify, rest] = steps.times[step].map(duration);
  return `step ${number(step + 1)}: ${tokensOf(steps.emitted[step])}, ${steps.accepted[step]} of ${steps.drafted[step]} drafted accepted\n` +
    `draft ${draft}, verify ${verify}, rest ${rest}`;
}

function showTable() {
  const total = data.sources.reduce((sum, [, , accepted]) => sum + accepted, 0);
  id("sources").replaceChildren(...data.sources.map(([name, drafted, accepted], source) => {
    const button = make("button", { type: "button", "aria-pressed": "true", "aria-label": `show ${name}` }, "shown");
    button.onclick = () => {
      const off = !hidden.delete(source);
      if (off) hidden.add(source);
      button.setAttribute("aria-pressed", String(!off));
      button.textContent = off ? "not shown" : "shown";
      for (const chunk of row.chunks.filter(({ rich }) => rich)) {
        chunk.rich = undefined;
        enrich(chunk);
      }
    };
    const title = make("th", { scope: "row" }, make("span", { class: `ink ${kinds[source]}` }, swatch(source)), ` ${name}`);
    const copied = source ? [number(drafted), number(accepted), percent(accepted, drafted)] : ["-", "-", "-"];
    const cells = [`${number(accepted)} (${percent(accepted, total)})`, ...copied].map((text) => make("td", {}, text));
    return make("tr", {}, title, ...cells, make("td", {}, button));
  }));
}

function showRow(place) {
  row = opened(data.rows[place] ?? { prompt: [], texts: [], steps: { forward: [], drafted: [], accepted: [], emitted: [], times: [] }, path: [], nodes: {} });
  [chosen, kept] = [-1, false];
  id("details").replaceChildren(make("p", { class: "hint" }, "No token is chosen."));
  id("prompt").querySelector("pre").textContent = row.prompt.join("");
  id("prompt").querySelector("summary").textContent = `Prompt (${number(row.prompt.length)} tokens)`;
  showText();
  describePlots();
  drawAll();
}

const KEYS = {
  ArrowRight: () => chosen + 1,
  ArrowLeft: () => chosen - 1,
  ArrowDown: () => (chosen < 0 ? 0 : row.tokens[row.step[chosen]] + row.steps.emitted[row.step[chosen]]),
  ArrowUp: () => row.tokens[row.step[Math.max(0, row.tokens[row.step[Math.max(0, chosen)]] - 1)]],
  Home: () => 0,
  End: () => row.count - 1,
};

function listen() {
  const box = id("text");
  const tokenOf = (event) => (event.target.token === undefined ? -1 : event.target.token);
  box.onmousemove = (event) => {
    const token = tokenOf(event);
    tip(event, token < 0 ? "" : summary(token));
    if (token >= 0 && token !== chosen && !kept) choose(token);
  };
  box.onmouseleave = (event) => tip(event, "");
  box.onclick = (event) => {
    if (tokenOf(event) < 0) return;
    choose(tokenOf(event));
    kept = true;
  };
  box.onkeydown = (event) => {
    if (event.key === "Escape") kept = false;
    if (!(event.key in KEYS) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    choose(KEYS[event.key](), { scroll: true, speak: true });
    kept = true;
  };
  for (const plot of document.querySelectorAll(".plot")) {
    plot.onmousemove = (event) => tip(event, row.count ? stepTip(stepAt(event)) : "");
    plot.onmouseleave = (event) => tip(event, "");
    plot.onclick = (event) => goTo(stepAt(event), { scroll: true });
  }
  id("step").oninput = (event) => goTo(Number(event.target.value) - 1, { scroll: true, speak: true });
  id("row").onchange = (event) => showRow(Number(event.target.value));
  const themes = [["system", "light dark"], ["light", "light"], ["dark", "dark"]];
  let theme = 0;
  id("theme").onclick = (event) => {
    theme = (theme + 1) % themes.length;
    document.documentElement.style.colorScheme = themes[theme][1];
    event.target.textContent = `Theme: ${themes[theme][0]}`;
    drawAll();
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  new ResizeObserver(drawAll).observe(plots.tokens);
}

function start() {
  id("about").textContent = Object.entries(data.about).map(([name, value]) => (name === "model" ? value : `${name} ${value}`)).join(" · ");
  id("note").hidden = !data.note;
  id("note").textContent = data.note ? `Decoded plainly: ${data.note}` : "";
  id("figures").replaceChildren(...data.figures.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value))));
  id("rows").hidden = data.rows.length < 2;
  id("row").append(...data.rows.map((_, place) => make("option", { value: place }, `${place + 1} of ${data.rows.length}`)));
  showTable();
  showRow(0);
  listen();
  document.documentElement.dataset.ready = "true";
}

start();
