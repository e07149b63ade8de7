// --- The view of a label: which rules speak for it, and which against it ---------------------------------------------

function viewLabels(model) {
  const names = model.labels.names;
  const noun = model.kind === "numbers" ? "target" : model.kind === "classes" ? "class" : "label";
  const words =
    model.kind === "numbers"
      ? { for: "Raises it", against: "Lowers it", rulesFor: "rules that raise it", rulesAgainst: "rules that lower it" }
      : {
          for: "Speaks for it",
          against: "Speaks against it",
          rulesFor: "rules for it",
          rulesAgainst: "rules against it",
        };
  const lists = {
    for: listRules(model, `Rules for the ${noun}`),
    against: listRules(model, `Rules against the ${noun}`),
  };
  const title = element("h3", { class: "picked" });
  const facts = element("div");
  const friends = element("div");
  const pictures = element("div");
  const picker = choice(
    "label-pick",
    `Pick a ${noun}`,
    names.map((name, k) => [k, name]),
    (k) => {
      location.hash = `label/${k}`;
    },
  );
  const rows = names.map((name, k) => {
    const rules = model.labelRules[k].length;
    const relevant = model.labels.relevant?.[k] / model.data?.examples;
    const known = !Number.isNaN(relevant); // how frequent the label is tells more: most rules are about all labels
    return element(
      "li",
      { "data-label": k },
      element("a", { href: `#label/${k}`, title: name }, nameLabel(model, k)),
      shareBar(known ? relevant : rules / model.mostLabelRules),
      element("span", { class: "number" }, known ? formatShare(relevant) : count(rules, "rule")),
    );
  });
  const node = element(
    "section",
    { class: "split" },
    element(
      "div",
      { class: "side" },
      element("h2", {}, noun === "class" ? "Classes" : `${noun[0].toUpperCase()}${noun.slice(1)}s`),
      picker.field,
      element(
        "p",
        { class: "faint" },
        model.labels.relevant ? "Relevant for this share of the data:" : "Rules about it:",
      ),
      element("ul", { class: "bars shares index" }, rows),
    ),
    element(
      "div",
      { class: "content" },
      title,
      facts,
      friends,
      pictures,
      element(
        "div",
        { class: "sides" },
        element("div", {}, element("h4", { class: "for" }, `${words.for}, most effective first`), lists.for.node),
        element(
          "div",
          {},
          element("h4", { class: "against" }, `${words.against}, most effective first`),
          lists.against.node,
        ),
      ),
    ),
  );

  function show(k) {
    picker.select.value = String(k);
    rows.forEach((row, i) => setCurrent(row.firstChild, i === k));
    title.replaceChildren(named(names[k]));
    const scored = model.labelRules[k].map((t) => ({ t, score: scoreOf(model, t, k) }));
    // how much a rule moves in all; one written by hand covers nothing that is known
    const weight = ({ t, score }) => Math.abs(score) * Math.max(model.rules.coverage[t], 1e-9);
    scored.sort((a, b) => weight(b) - weight(a) || a.t - b.t);
    const side = (sign) => scored.filter(({ score }) => score * sign > 0);
    const relevant = model.labels.relevant;
    facts.replaceChildren(
      listPairs([
        relevant && [
          "relevant for",
          `${count(relevant[k], "example")} (${formatShare(relevant[k] / model.data.examples)})`,
        ],
        [words.rulesFor, `${formatWhole(side(1).length)}`],
        [words.rulesAgainst, `${formatWhole(side(-1).length)}`],
        model.rules.condition_offsets[1] === 0 && ["default score", signed(scoreOf(model, 0, k))],
      ]),
    );
    friends.replaceChildren(...describeFriends(model, k));
    pictures.replaceChildren(...(model.image ? drawLabel(model, k) : []));
    lists.for.show(
      side(1).map(({ t }) => t),
      k,
    );
    lists.against.show(
      side(-1).map(({ t }) => t),
      k,
    );
  }
  return { node, show };
}

function drawLabel(model, k) {
  const caption = element(
    "figcaption",
    {},
    "Ink ",
    element("span", { class: "for" }, "here"),
    " speaks for it, ",
    element("span", { class: "against" }, "here"),
    " against it, as far as rules test single pixels.",
  );
  return [
    element(
      "div",
      { class: "pictures ink-map" },
      drawMap(model, weighInk(model, k), "Where ink speaks for the label, and where against it"),
      model.segments &&
        drawSegments(`Segment ${model.labels.names[k]}`, (segment) => [segment === k ? "lit" : "unlit", 1]),
      caption,
    ),
  ];
}

// Labels that go with a label, and those that it is set against.
function describeFriends(model, k) {
  const friends = (model.labels.friends[k] ?? []).map(([label, score]) => ({ label, score }));
  const together = friends.filter(({ score }) => score > 0);
  const apart = friends.filter(({ score }) => score < 0);
  const line = (title, list) =>
    list.length > 0 &&
    element(
      "div",
      { class: "friends" },
      element("span", { class: "faint" }, title),
      element(
        "span",
        { class: "chips" },
        list.map((entry) => describeScore(model, entry)),
      ),
    );
  return [line("goes with", together), line("is set against", apart)].filter(Boolean);
}
