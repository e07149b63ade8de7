// --- Charts: curves and histograms as SVG ----------------------------------------------------------------------------

const CURVE = { width: 320, height: 180, left: 46, right: 20, top: 12, bottom: 30 };

// Round numbers from low to high, some five of them.
function findTicks(low, high) {
  const raw = high / 4.5 - low / 4.5 || Math.abs(high) || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= raw);
  const ticks = [];
  for (let i = 0; i < 10; i++) {
    // a bounded loop: of numbers that are large for their distance, adding 1 may not change anything
    const tick = (Math.ceil(low / step - 1e-9) + i) * step;
    if (tick <= high + step * 1e-9) ticks.push(tick);
  }
  return ticks;
}

// A curve against the number of rules, on a logarithmic scale.
function drawCurve({ name, n_rules, values }) {
  const { width, height, left, right, top, bottom } = CURVE;
  const least = Math.min(0, ...values);
  const most = Math.max(...values, least + 1e-12);
  const last = n_rules.at(-1);
  const logarithm = Math.log10(Math.max(last, 2));
  const x = (n) => left + ((width - left - right) * Math.log10(n)) / logarithm;
  const y = (value) => top + (height - top - bottom) * (1 - (value - least) / (most - least));
  const chart = drawing("svg", {
    viewBox: `0 0 ${width} ${height}`,
    role: "img",
    class: "curve",
    "aria-label":
      `${name}: ${formatNumber(values[0])} after ${count(n_rules[0], "rule")}, ` +
      `${formatNumber(values.at(-1))} after ${formatWhole(last)}`,
  });
  for (const tick of findTicks(least, most)) {
    chart.append(
      drawing("line", { x1: left, x2: width - right, y1: y(tick), y2: y(tick), class: "grid" }),
      drawing("text", { x: left - 6, y: y(tick) + 3.5, "text-anchor": "end" }, formatNumber(tick)),
    );
  }
  for (let n = 1; n <= last; n *= 10) {
    chart.append(drawing("text", { x: x(n), y: height - bottom + 15, "text-anchor": "middle" }, formatWhole(n)));
  }
  const points = n_rules.map((n, i) => `${x(n).toFixed(1)},${y(values[i]).toFixed(1)}`);
  chart.append(
    drawing("text", { x: width - right, y: height - 1, "text-anchor": "end" }, "rules"),
    drawing("polyline", { points: points.join(" "), class: "line" }),
    drawing("circle", { cx: x(last), cy: y(values.at(-1)), r: 3.5, class: "dot" }),
  );
  return element(
    "figure",
    {},
    element("figcaption", {}, name, " ", element("strong", {}, formatNumber(Number(values.at(-1).toPrecision(3))))),
    chart,
  );
}

const LEFT = 44; // room for the numbers of a vertical axis
const SLOT = 5; // the width of a bar of thresholds

// Data above the axis; below it, at their places, the thresholds of conditions.
function drawHistogram({ low, high, counts, conditions, left }) {
  const width = Math.min(640, Math.max(300, innerWidth - 40)); // so that text stays readable on a phone
  const height = 224;
  const right = 8;
  const middle = 150;
  const bottom = 4;
  const n = counts.length;
  const step = (width - left - right) / n;
  const most = Math.max(1, ...counts);
  // halves, since the distance of the largest numbers is infinite
  const share = (value) => Math.min(Math.max((value / 2 - low / 2) / (high / 2 - low / 2 || 1), 0), 1);
  const place = (value) => left + (width - left - right) * share(value);
  const edge = (b) => formatNumber(low * (1 - b / n) + high * (b / n));
  const chart = drawing("svg", {
    viewBox: `0 0 ${width} ${height}`,
    role: "img",
    class: "histogram",
    "aria-label": `Histogram from ${formatNumber(low)} to ${formatNumber(high)}; thresholds below the axis`,
  });
  for (let b = 0; b < n; b++) {
    const x = left + b * step;
    const up = ((middle - 12) * counts[b]) / most;
    chart.append(
      drawing(
        "rect",
        { x: x + 0.5, y: middle - up, width: Math.max(step - 1, 0.5), height: up, class: "data" },
        drawing("title", {}, `${edge(b)} to ${edge(b + 1)}: ${count(counts[b], "example")}`),
      ),
    );
  }
  const slots = new Map(); // conditions whose thresholds are drawn at the same place
  for (const condition of conditions) {
    const slot = Math.round(place(condition.value) / SLOT);
    if (!slots.has(slot)) slots.set(slot, []);
    slots.get(slot).push(condition);
  }
  const deepest = Math.max(1, ...[...slots.values()].map((own) => own.length));
  for (const own of slots.values()) {
    const x = own.reduce((sum, { value }) => sum + place(value), 0) / own.length;
    let y = middle + 18;
    for (const operator of [ABOVE, AT_MOST]) {
      const values = own.filter((condition) => condition.operator === operator).map(({ value }) => value);
      if (!values.length) continue;
      const down = ((height - bottom - middle - 18) * values.length) / deepest;
      const least = values.reduce((a, b) => Math.min(a, b));
      const largest = values.reduce((a, b) => Math.max(a, b));
      const range = least === largest ? formatNumber(least) : `${formatNumber(least)} to ${formatNumber(largest)}`;
      chart.append(
        drawing(
          "rect",
          { x: x - (SLOT - 1) / 2, y, width: SLOT - 1, height: down, class: operator === ABOVE ? "for" : "against" },
          drawing("title", {}, `${SIGNS[operator]} ${range}: ${count(values.length, "condition")}`),
        ),
      );
      y += down;
    }
  }
  chart.append(drawing("line", { x1: left, x2: width - right, y1: middle, y2: middle, class: "axis" }));
  for (const tick of findTicks(low, high)) {
    const x = place(tick);
    const anchor = x < 20 ? "start" : x > width - 40 ? "end" : "middle";
    chart.append(drawing("text", { x, y: middle + 12, "text-anchor": anchor }, formatNumber(tick)));
  }
  return chart;
}
