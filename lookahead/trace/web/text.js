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
