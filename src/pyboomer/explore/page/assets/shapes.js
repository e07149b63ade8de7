// --- Shapes: what the rules add up to that test one feature, or two, and no other ------------------------------------

const MOST_LINES = 8; // more labels are a map
const MOST_ROWS = 30; // labels of a map
const ELSE = -1; // stands for any category that no rule names

// The features that a rule tests.
const listTested = (model, t) => [...new Set(listConditions(model, t).map(({ feature }) => feature))];

// The values of a feature that rules tell apart, each by one that stands for it: the upper end of an interval, which
// belongs to it, or the code of a category. A missing value meets no condition.
function findSteps(model, feature, rules) {
  const names = model.features.categories[feature];
  if (names) {
    const codes = Object.keys(names).map(Number);
    return [...codes, ...(isOrdinal(model, feature) ? [] : [ELSE]), NaN];
  }
  const conditions = rules.flatMap((t) => listConditions(model, t).filter((c) => c.feature === feature));
  const edges = new Set(conditions.map(({ value }) => value + 0));
  return [...Float64Array.from(edges).sort(), Infinity, NaN];
}

// Steps as text, thresholds as rules print them; in short without lower ends.
function nameSteps(model, feature, steps, short = false) {
  const names = model.features.categories[feature];
  const digits = new Map();
  for (const t of model.featureRules[feature])
    for (const condition of listConditions(model, t))
      if (condition.feature === feature)
        digits.set(condition.value + 0, Math.max(condition.digits, digits.get(condition.value + 0) ?? 0));
  const format = (edge) => formatThreshold(edge, digits.get(edge));
  return steps.map((value, i) => {
    if (Number.isNaN(value)) return "missing";
    if (names) return value === ELSE ? "any other" : nameCategory(model, feature, value);
    if (value === Infinity) return i ? `> ${format(steps[i - 1])}` : "any";
    return i && !short ? `${format(steps[i - 1])} to ${format(value)}` : `≤ ${format(value)}`;
  });
}

const lets = (conditions, feature, x) =>
  conditions.every((c) => c.feature !== feature || meets(x, c.operator, c.value));

// The shape of a feature: for each step the scores of all labels, added up in the order of the rules.
function findShape(model, feature) {
  const rules = model.featureRules[feature].filter((t) => listTested(model, t).length === 1);
  const steps = findSteps(model, feature, rules);
  const values = steps.map(() => new Float64Array(model.nLabels));
  for (const t of rules) {
    const conditions = listConditions(model, t);
    const scores = listScores(model, t);
    steps.forEach((x, i) => {
      if (lets(conditions, feature, x)) for (const { label, score } of scores) values[i][label] += score;
    });
  }
  const present = values.slice(0, -1); // without a missing value
  const moved = Array.from({ length: model.nLabels }, (_, k) => {
    const column = present.map((scores) => scores[k]);
    return column.reduce((a, b) => Math.max(a, b), -Infinity) - column.reduce((a, b) => Math.min(a, b), Infinity);
  });
  const labels = moved.map((_, k) => k).filter((k) => moved[k] > 0);
  labels.sort((a, b) => moved[b] - moved[a] || a - b);
  return { feature, rules, steps, values, labels };
}

// The rules that test a feature and one other, by that other; of the most rules first.
function findPartners(model, feature) {
  const partners = new Map();
  for (const t of model.featureRules[feature]) {
    const tested = listTested(model, t);
    if (tested.length !== 2) continue;
    const other = tested[0] === feature ? tested[1] : tested[0];
    partners.set(other, [...(partners.get(other) ?? []), t]);
  }
  return [...partners].sort((a, b) => b[1].length - a[1].length || a[0] - b[0]);
}

// The grid of a pair for a label: rows are steps of the other feature.
function findGrid(model, feature, other, rules, label) {
  const across = findSteps(model, feature, rules);
  const down = findSteps(model, other, rules);
  const values = down.map(() => new Float64Array(across.length));
  for (const t of rules) {
    const score = scoreOf(model, t, label);
    const conditions = listConditions(model, t);
    const columns = across.map((x) => lets(conditions, feature, x));
    down.forEach((y, j) => {
      if (lets(conditions, other, y)) columns.forEach((met, i) => (values[j][i] += met ? score : 0));
    });
  }
  return { across, down, values };
}

// --- Shapes as pictures ----------------------------------------------------------------------------------------------

const largest = (rows) => rows.reduce((most, row) => row.reduce((a, b) => Math.max(a, Math.abs(b)), most), 1e-300);

const tell = (model, scores, labels) =>
  labels.map((k) => `${model.labels.short[k]} ${formatScore(scores[k])}`).join(", ");

const needsMap = (shape) => shape.labels.length > MOST_LINES;
const leftOf = (shape) => (needsMap(shape) ? 110 : LEFT);
// a label keeps its colour from feature to feature, if there are colours for all
const colourOf = (model, k, i) => `c${model.nLabels <= MOST_LINES ? k : i}`;

// Steps of a numeric feature against its values: a line per label, or a row of a map.
function drawSteps(model, shape, low, high) {
  const isMap = needsMap(shape);
  const labels = shape.labels.slice(0, isMap ? MOST_ROWS : MOST_LINES);
  const width = Math.min(640, Math.max(300, innerWidth - 40));
  const [left, right, top] = [leftOf(shape), 8, 8];
  const height = isMap ? top + 16 * labels.length + 18 : 200;
  const bottom = height - 18;
  const edges = shape.steps.slice(0, -2);
  const values = shape.values.slice(0, -1);
  const share = (value) => Math.min(Math.max((value / 2 - low / 2) / (high / 2 - low / 2 || 1), 0), 1);
  const place = (value) => left + (width - left - right) * share(value);
  const bounds = [low, ...edges, high].map(place);
  const texts = nameSteps(model, shape.feature, shape.steps);
  const most = largest(values.map((scores) => labels.map((k) => scores[k])));
  const chart = drawing("svg", {
    viewBox: `0 0 ${width} ${height}`,
    role: "img",
    class: "shape",
    "aria-label": `What the value adds to the scores of ${count(labels.length, "label")}, from ${formatNumber(low)} to ${formatNumber(high)}`,
  });
  if (isMap) {
    labels.forEach((k, row) => {
      const y = top + 16 * row;
      const name = model.labels.short[k];
      chart.append(drawing("text", { x: left - 6, y: y + 11.5, "text-anchor": "end" }, name.length > 17 ? `${name.slice(0, 16)}…` : name));
      values.forEach((scores, i) => {
        const box = { x: bounds[i], y, width: Math.max(bounds[i + 1] - bounds[i], 0), height: 15 };
        chart.append(drawCell(box, scores[k], most, `${name}, ${texts[i]}: ${formatScore(scores[k])}`));
      });
    });
  } else {
    const y = (value) => (top + bottom) / 2 - ((bottom - top) / 2) * (value / most / 1.05);
    for (const tick of findTicks(-most, most))
      chart.append(
        drawing("line", { x1: left, x2: width - right, y1: y(tick), y2: y(tick), class: Math.abs(tick) < most * 1e-9 ? "axis" : "grid" }),
        drawing("text", { x: left - 6, y: y(tick) + 3.5, "text-anchor": "end" }, formatNumber(tick)),
      );
    labels.forEach((k, i) => {
      const points = values.flatMap((scores, s) => [
        `${bounds[s].toFixed(1)},${y(scores[k]).toFixed(1)}`,
        `${bounds[s + 1].toFixed(1)},${y(scores[k]).toFixed(1)}`,
      ]);
      chart.append(drawing("polyline", { points: points.join(" "), class: `line ${colourOf(model, k, i)}`, "data-label": k }));
    });
    // what the pointer is told of a step: the scores of all lines
    values.forEach((scores, i) =>
      chart.append(
        drawing(
          "rect",
          { x: bounds[i], y: top, width: Math.max(bounds[i + 1] - bounds[i], 0), height: bottom - top, class: "touch" },
          drawing("title", {}, `${texts[i]}: ${tell(model, scores, labels)}`),
        ),
      ),
    );
  }
  for (const tick of findTicks(low, high))
    chart.append(drawing("text", { x: place(tick), y: height - 4, "text-anchor": "middle" }, formatNumber(tick)));
  return element("div", {}, chart, !isMap && drawLegend(model, labels));
}

// A cell of a map: blue for a label, orange against it, the stronger the more.
function drawCell(box, score, most, text) {
  const strength = Math.abs(score) / most;
  return drawing(
    "rect",
    { ...box, class: score < 0 ? "against" : "for", "fill-opacity": strength.toFixed(3), "data-score": String(score) },
    drawing("title", {}, text),
  );
}

function drawLegend(model, labels) {
  return element(
    "ul",
    { class: "legend" },
    labels.map((k, i) =>
      element("li", {}, element("span", { class: `swatch ${colourOf(model, k, i)}` }), element("a", { href: `#label/${k}` }, nameLabel(model, k))),
    ),
  );
}

// Steps in rows and labels in columns, with all digits for machines.
function tabulateShape(model, shape, labels) {
  const texts = nameSteps(model, shape.feature, shape.steps);
  const most = largest(shape.values);
  const rows = shape.steps.map((step, i) =>
    element(
      "tr",
      { "data-step": String(step) },
      element("th", { scope: "row" }, named(texts[i])),
      labels.map((k) => {
        const score = shape.values[i][k];
        const cell = element("td", { class: `number ${score < 0 ? "against" : "for"}` }, exact(score, score ? formatScore(score) : "0"));
        cell.dataset.label = k;
        cell.dataset.strength = String(Math.min(4, Math.ceil((4 * Math.abs(score)) / most)));
        return cell;
      }),
    ),
  );
  const head = [element("th"), ...labels.map((k) => element("th", { scope: "col", class: "number" }, nameLabel(model, k)))];
  return element(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": "What each value adds to the scores" },
    element("table", { class: "steps" }, element("thead", {}, element("tr", {}, head)), element("tbody", {}, rows)),
  );
}

function drawShape(model, shape, histogram) {
  const { feature } = shape;
  const others = model.featureRules[feature].length - shape.rules.length;
  if (!shape.rules.length)
    return [element("p", { class: "faint shapes" }, `All ${count(others, "rule")} that test it test other features, too: it has no shape of its own.`)];
  const caption =
    `What a value adds to the scores: the sum of ${count(shape.rules.length, "rule")} that test${shape.rules.length === 1 ? "s" : ""} nothing else. ` +
    (others ? `${count(others, "other rule")} test${others === 1 ? "s" : ""} it with other features. ` : "") +
    "A missing value adds nothing.";
  const all = [...Array(model.nLabels).keys()];
  const figure = (picture) =>
    element("figure", { class: "shapes" }, picture, element("figcaption", { class: "faint" }, caption));
  if (feature in model.features.categories && model.nLabels <= MOST_LINES) return [figure(tabulateShape(model, shape, all))];
  const numbers = element("details", { class: "numbers" }, element("summary", {}, "All numbers"));
  numbers.addEventListener("toggle", () => {
    // a table may be large: it is made when it is wanted
    if (numbers.open && numbers.children.length === 1) numbers.append(tabulateShape(model, shape, all));
  });
  if (feature in model.features.categories)
    return [figure(tabulateShape(model, shape, shape.labels.slice(0, MOST_LINES))), numbers];
  const edges = shape.steps.slice(0, -2);
  let low = Math.min(edges[0], histogram?.low ?? Infinity);
  let high = Math.max(edges.at(-1), histogram?.high ?? -Infinity);
  if (low === high) [low, high] = [low - 0.5, high + 0.5];
  return [figure(drawSteps(model, shape, low, high)), numbers];
}

// --- Pairs -----------------------------------------------------------------------------------------------------------

function drawPairs(model, feature) {
  const partners = findPartners(model, feature);
  if (!partners.length || partners[0][1].length < 2) return []; // a single rule is in the list
  const picture = element("div");
  const rules = new Map(partners);
  const other = choice(
    "pair-feature",
    "Together with",
    partners.map(([f, own]) => [f, `${model.features.names[f]} (${count(own.length, "rule")})`]),
    show,
  );
  const label = choice("pair-label", "For", model.labels.names.map((name, k) => [k, name]), show);
  function show() {
    const [g, k] = [Number(other.select.value), Number(label.select.value)];
    picture.replaceChildren(drawGrid(model, feature, g, findGrid(model, feature, g, rules.get(g), k), k));
  }
  show();
  const caption =
    "What two values add to the score, this one from left to right, the other upwards: the sum of the rules that test " +
    "these two features and no other.";
  return [
    element("h4", {}, "Pairs"),
    element("div", { class: "filters" }, other.field, label.field),
    element("figure", {}, picture, element("figcaption", { class: "faint" }, caption)),
  ];
}

// Steps of equal size: their number counts here, not their width.
function drawGrid(model, feature, other, { across, down, values }, label) {
  const [columns, rows] = [across.slice(0, -1), down.slice(0, -1)];
  const [texts, names] = [nameSteps(model, feature, across), nameSteps(model, other, down)];
  const short = nameSteps(model, feature, across, true);
  const width = Math.min(640, Math.max(300, innerWidth - 40));
  const [left, top, size] = [130, 6, 20];
  const step = Math.min((width - left - 8) / columns.length, 90);
  const height = top + size * rows.length + 24;
  const most = largest(values);
  const chart = drawing("svg", {
    viewBox: `0 0 ${width} ${height}`,
    role: "img",
    class: "shape grid-map",
    "aria-label": `What two values add to the score of ${model.labels.names[label]}`,
  });
  rows.forEach((_, j) => {
    const y = top + size * (rows.length - 1 - j); // large numbers on top
    chart.append(drawing("text", { x: left - 6, y: y + 14, "text-anchor": "end" }, names[j].slice(0, 22)));
    columns.forEach((_, i) => {
      const box = { x: left + step * i, y, width: step - 1, height: size - 1 };
      chart.append(drawCell(box, values[j][i], most, `${texts[i]} and ${names[j]}: ${formatScore(values[j][i])}`));
    });
  });
  const every = Math.ceil(70 / step);
  columns.forEach((_, i) => {
    if (i % every === 0)
      chart.append(drawing("text", { x: left + step * (i + 0.5), y: height - 8, "text-anchor": "middle" }, short[i].slice(0, Math.floor((step * every) / 6))));
  });
  return chart;
}
