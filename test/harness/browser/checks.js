// What can be measured of a page. Gives a list of {check, text}; empty: all is well.
(() => {
  const wrong = [];
  const fail = (check, text) => wrong.push({check, text});
  const name = e => e.tagName.toLowerCase() + (e.getAttribute("class") ? "." + e.getAttribute("class") : "") + " " + e.textContent.trim().slice(0, 40);

  // Nothing is wider than the window.
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > width) {
    const wide = [...document.body.querySelectorAll("*")].filter(e => e.getBoundingClientRect().right > width + 0.5);
    fail("overflow", document.documentElement.scrollWidth + " px: " + (wide.length ? name(wide.at(-1)) : ""));
  }

  // Contrast of text by WCAG 2.
  const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const rgba = color => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const luminance = color => {
    const [r, g, b] = color.map(c => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = e => {
    for (; e; e = e.parentElement) {
      const color = rgba(getComputedStyle(e).backgroundColor);
      if (color[3] === 255) return color;
    }
    return rgba(matchMedia("(prefers-color-scheme: dark)").matches ? "#121212" : "#ffffff");
  };
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let measured = 0;
  for (let node; (node = texts.nextNode());) {
    const e = node.parentElement;
    if (!node.data.trim() || e.closest("title, style, script") || !e.checkVisibility()) continue;
    const style = getComputedStyle(e), text = luminance(rgba(e.closest("svg") ? style.fill : style.color)), behind = luminance(ground(e));
    const contrast = (Math.max(text, behind) + 0.05) / (Math.min(text, behind) + 0.05);
    measured++;
    if (contrast < 4.5) fail("contrast", contrast.toFixed(2) + ": " + name(e));
  }
  if (!measured) fail("contrast", "there is no text");

  // Widths stand for numbers.
  for (const list of document.querySelectorAll(".nodes")) {
    const bars = [...list.querySelectorAll("svg.bar")];
    const largest = Math.max(...bars.map(b => +b.dataset.amount));
    const most = list.getBoundingClientRect().width;
    for (const bar of bars) {
      const amount = +bar.dataset.amount, whole = bar.getBoundingClientRect().width;
      if (largest && Math.abs(whole - Math.max(most * amount / largest, 2)) > 1) fail("scale", `${amount} of ${largest} is ${whole} px of ${most}`);
      for (const part of bar.querySelectorAll("rect[data-amount]")) {
        const wanted = whole * Math.min(+part.dataset.amount, amount) / amount, is = part.getBBox().width;
        if (Math.abs(is - wanted) > 0.5) fail("scale", `${name(part)}: ${is} px, not ${wanted}`);
      }
    }
  }

  // Structure: headings in order, pictures with words, links that lead somewhere.
  let level = 0;
  for (const heading of document.querySelectorAll("h1, h2, h3, h4, h5, h6")) {
    const next = +heading.tagName[1];
    if (next > level + 1) fail("headings", `${heading.tagName} after H${level}: ${name(heading)}`);
    level = next;
  }
  if (document.querySelectorAll("h1").length !== 1) fail("headings", "there is not one H1");
  for (const svg of document.querySelectorAll("svg:not([aria-hidden])")) {
    if (svg.getAttribute("role") !== "img" || !svg.getAttribute("aria-label")) fail("labels", name(svg));
  }
  const ids = [...document.querySelectorAll("[id]")].map(e => e.id);
  if (new Set(ids).size !== ids.length) fail("links", "an id stands twice");
  for (const link of document.querySelectorAll("a")) {
    const to = link.getAttribute("href") || "";
    if (!to.startsWith("#") || !document.getElementById(decodeURIComponent(to.slice(1)))) fail("links", to);
  }
  return wrong;
})()
