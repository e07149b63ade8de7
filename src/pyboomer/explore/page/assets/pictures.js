// --- Pictures: the pixels of an image, and a seven-segment display ---------------------------------------------------

// Each pixel with as much ink as `values` say; `conditions` are marked: > in solid, <= in dashed lines.
function drawPixels(model, values, conditions, most) {
  const { height, width } = model.image;
  const picture = drawing("svg", {
    viewBox: `-0.1 -0.1 ${width + 0.2} ${height + 0.2}`,
    class: "pixels",
    role: "img",
    "aria-label": values ? "The picture of this example" : "The pixels that this rule tests",
  });
  picture.append(drawing("rect", { x: 0, y: 0, width, height, class: "paper" }));
  if (values) {
    values.forEach((value, i) => {
      if (!(value > 0)) return;
      picture.append(
        drawing("rect", {
          x: i % width,
          y: Math.floor(i / width),
          width: 1.01,
          height: 1.01,
          class: "ink",
          "fill-opacity": Math.min(1, value / most),
        }),
      );
    });
  } else {
    for (let i = 1; i < Math.max(width, height); i++) {
      if (i < width) picture.append(drawing("line", { x1: i, x2: i, y1: 0, y2: height, class: "grid" }));
      if (i < height) picture.append(drawing("line", { x1: 0, x2: width, y1: i, y2: i, class: "grid" }));
    }
  }
  picture.append(drawing("g", { class: "marks" }));
  markPixels(model, picture, conditions, !values);
  return picture;
}

function markPixels(model, picture, conditions, filled) {
  const marks = picture.querySelector(".marks"),
    { width } = model.image;
  marks.replaceChildren(
    ...conditions.map(({ feature, operator, value, digits }) => {
      const kind = operator === null ? "here" : operator === ABOVE ? "for" : "against";
      const x = feature % width;
      const y = Math.floor(feature / width);
      return drawing(
        "rect",
        { x: x + 0.12, y: y + 0.12, width: 0.76, height: 0.76, class: `mark ${kind}${filled ? " filled" : ""}` },
        drawing(
          "title",
          {},
          model.features.names[feature] +
            (operator === null ? "" : ` ${SIGNS[operator]} ${formatThreshold(value, digits)}`),
        ),
      );
    }),
  );
}

// A number per pixel: above 0 in one colour, below 0 in the other, the larger the stronger.
function drawMap(model, values, description) {
  const { height, width } = model.image,
    most = values.reduce((a, b) => Math.max(a, Math.abs(b)), 1e-300);
  const map = drawing(
    "svg",
    {
      viewBox: `-0.1 -0.1 ${width + 0.2} ${height + 0.2}`,
      class: "pixels map",
      role: "img",
      "aria-label": description,
    },
    drawing("rect", { x: 0, y: 0, width, height, class: "paper" }),
  );
  values.forEach((value, i) => {
    if (!value) return;
    map.append(
      drawing(
        "rect",
        {
          x: i % width,
          y: Math.floor(i / width),
          width: 1.01,
          height: 1.01,
          class: value > 0 ? "for" : "against",
          "fill-opacity": Math.abs(value) / most,
        },
        drawing("title", {}, model.features.names[i]),
      ),
    );
  });
  return map;
}

// How ink in each pixel moves a label: the scores of the rules that test it, reversed where they want little ink.
function weighInk(model, label) {
  const weights = new Float64Array(model.features.names.length);
  for (const t of model.labelRules[label]) {
    const conditions = listConditions(model, t);
    const effect = (scoreOf(model, t, label) * model.rules.coverage[t]) / conditions.length;
    for (const { feature, operator } of conditions) weights[feature] += operator === ABOVE ? effect : -effect;
  }
  return weights;
}

// Corners of the segments a to g, on a display of 10 x 18.
const SEGMENTS = [
  "2,1 3,0 7,0 8,1 7,2 3,2",
  "8,1.5 9,2.5 9,7.5 8,8.5 7,7.5 7,2.5",
  "8,9.5 9,10.5 9,15.5 8,16.5 7,15.5 7,10.5",
  "2,17 3,16 7,16 8,17 7,18 3,18",
  "2,9.5 3,10.5 3,15.5 2,16.5 1,15.5 1,10.5",
  "2,1.5 3,2.5 3,7.5 2,8.5 1,7.5 1,2.5",
  "2,9 3,8 7,8 8,9 7,10 3,10",
];

// `shade` says, for each segment, its class and how opaque it is.
function drawSegments(label, shade) {
  const display = drawing("svg", { viewBox: "0 -0.5 10 19", class: "display", role: "img", "aria-label": label });
  SEGMENTS.forEach((points, k) => {
    const [kind, opacity] = shade(k);
    display.append(drawing("polygon", { points, class: `segment ${kind}`, "fill-opacity": opacity }));
  });
  return display;
}

const drawPrediction = (label, relevant) =>
  drawSegments(label, (k) => (relevant[k] === UNKNOWN ? ["unknown", 0.35] : relevant[k] ? ["lit", 1] : ["unlit", 1]));

function drawHead(scores) {
  const most = Math.max(...scores.map(({ score }) => Math.abs(score)), 1e-300);
  const byLabel = new Map(scores.map(({ label, score }) => [label, score]));
  return drawSegments("The scores of the segments", (k) => {
    const score = byLabel.get(k) ?? 0;
    return score === 0 ? ["unlit", 1] : [score > 0 ? "for" : "against", 0.15 + (0.85 * Math.abs(score)) / most];
  });
}
