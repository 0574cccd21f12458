// Progressive enhancement only: every page works without this.
"use strict";
(() => {
  document.documentElement.classList.add("script");
  const policy = window.trustedTypes
    ? window.trustedTypes.createPolicy("sankofa", { createHTML: (html) => html })
    : { createHTML: (html) => html };

  // Only here does markup enter a page: a part that our server rendered, with everything escaped.
  const put = (place, html) => { place.innerHTML = policy.createHTML(html); };

  const fetchPart = async (address, part, signal) => {
    const url = new URL(address, location.href);
    url.searchParams.set("part", part);
    const answer = await fetch(url, { signal, headers: { Accept: "text/html" } });
    const html = await answer.text();
    if (!answer.ok) throw new Error(html);
    return html;
  };

  // A day control moves the past: one small request for the part of the page that depends on the day.
  const isoDay = (days) => new Date(days * 86400000).toISOString().slice(0, 10);
  const dayNumber = (iso) => Math.round(Date.parse(iso + "T00:00:00Z") / 86400000);
  const startDay = (form) => {
    const slider = form.querySelector("input[type=range]");
    const calendar = form.querySelector("input[type=date]");
    const shown = form.querySelector("output");
    const place = document.getElementById(form.dataset.part);
    let pending, abort;
    const show = (iso) => {
      slider.value = dayNumber(iso);
      slider.setAttribute("aria-valuetext", iso);
      calendar.value = iso;
      shown.textContent = iso;
      for (const stop of form.querySelectorAll("[data-day]")) stop.ariaCurrent = stop.dataset.day === iso ? "true" : null;
    };
    const move = (iso) => {
      show(iso);
      clearTimeout(pending);
      pending = setTimeout(async () => {
        if (abort) abort.abort();
        abort = new AbortController();
        const url = new URL(location.href);
        url.searchParams.set("as_of", iso);
        place.classList.add("stale");
        try {
          const html = await fetchPart(url, form.dataset.part, abort.signal);
          put(place, html);
          for (const moved of place.querySelectorAll("[data-place]")) {
            document.title = moved.dataset.title;
            document.getElementById(moved.dataset.place).replaceChildren(...moved.childNodes);
            moved.remove();
          }
          history.replaceState(null, "", url);
          for (const link of document.querySelectorAll("a[href]:not([data-day], [href^='#'])")) {
            if (link.pathname !== location.pathname || place.contains(link)) continue;
            const same = new URL(link.href);
            same.searchParams.set("as_of", iso);
            link.href = same;
          }
          place.dataset.day = iso;
        } catch (failure) {
          if (failure.name === "AbortError") return;
          location.assign(url); // the server says on a page of its own what is wrong
        }
        place.classList.remove("stale");
      }, 90);
    };
    slider.addEventListener("input", () => move(isoDay(Number(slider.value))));
    calendar.addEventListener("change", () => { if (calendar.value) move(calendar.value); });
    form.addEventListener("submit", (event) => { event.preventDefault(); if (calendar.value) move(calendar.value); });
    form.addEventListener("click", (event) => {
      const step = event.target.closest("[data-day]");
      if (step) { event.preventDefault(); move(step.dataset.day); }
    });
  };

  // A figure opens its vintages over the page; the link leads to the same as a page.
  const openOver = async (link) => {
    const dialog = document.createElement("dialog");
    dialog.setAttribute("aria-label", link.closest("tr")?.querySelector("th")?.textContent || "");
    try {
      put(dialog, await fetchPart(link.href, "figure"));
    } catch { location.assign(link.href); return; }
    document.body.append(dialog);
    dialog.addEventListener("close", () => { dialog.remove(); link.focus(); });
    dialog.addEventListener("click", (event) => {
      if (event.target === dialog || event.target.closest(".close")) dialog.close();
    });
    dialog.showModal();
  };

  // Save a chart as pixels, as the page shows it.
  const savePng = async (button) => {
    const answer = await fetch(button.dataset.svg);
    const address = URL.createObjectURL(new Blob([await answer.text()], { type: "image/svg+xml" }));
    const image = new Image();
    image.onload = () => {
      const canvas = document.createElement("canvas");
      canvas.width = image.width * 2;
      canvas.height = image.height * 2;
      const pen = canvas.getContext("2d");
      pen.fillStyle = "#fff";
      pen.fillRect(0, 0, canvas.width, canvas.height);
      pen.drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob((blob) => {
        const link = document.createElement("a");
        link.href = URL.createObjectURL(blob);
        link.download = button.dataset.name + ".png";
        link.click();
        URL.revokeObjectURL(address);
      });
    };
    image.src = address;
  };

  // Try-it forms: call with the visitor's own key, which they type in.
  const tryCall = async (form) => {
    const path = form.dataset.path.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(form.elements[name].value));
    const query = new URLSearchParams();
    for (const field of form.querySelectorAll("[data-query]")) if (field.value) query.set(field.name, field.value);
    const url = path + (query.size ? "?" + query : "");
    const shown = form.querySelector("output");
    shown.textContent = url;
    const answer = await fetch(url, { headers: { "X-API-Key": form.elements.api_key.value } });
    const text = await answer.text();
    let body = text;
    try { body = JSON.stringify(JSON.parse(text), null, 2); } catch { /* shown as it is */ }
    shown.textContent = `GET ${url}\n${answer.status}\n\n${body.slice(0, 20000)}`;
  };

  // Sortable tables, with a button in each heading.
  const startSort = (table) => {
    const body = table.tBodies[0];
    const value = (row, column) => {
      const cell = row.cells[column];
      const exact = cell.querySelector("data, time");
      return (exact && (exact.getAttribute("value") || exact.dateTime)) || cell.dataset.sort || cell.textContent.trim();
    };
    const number = (text) => Number(text.replace(/[\s,\u202f\u00a0%×]/g, "").replace("\u2212", "-"));
    const sort = (heading, column) => {
      const down = heading.getAttribute("aria-sort") === "ascending";
      const order = (a, b) => {
        const [x, y] = [value(a, column), value(b, column)];
        const [m, n] = [number(x), number(y)];
        return Number.isNaN(m) || Number.isNaN(n) ? x.localeCompare(y) : m - n;
      };
      const rows = [...body.rows].sort(order);
      for (const other of heading.parentNode.cells) other.removeAttribute("aria-sort");
      heading.setAttribute("aria-sort", down ? "descending" : "ascending");
      body.append(...(down ? rows.reverse() : rows));
    };
    [...table.tHead.rows[0].cells].forEach((heading, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sort";
      button.append(...heading.childNodes);
      heading.append(button);
      button.addEventListener("click", () => sort(heading, column));
    });
  };

  // Only the browser remembers the edition last seen on a page, for the link to the changes since.
  for (const link of document.querySelectorAll("a[data-seen]")) {
    try {
      const key = `seen:${location.pathname}`;
      const before = localStorage.getItem(key);
      if (before && before !== link.dataset.seen) {
        link.href += `${link.href.includes("?") ? "&" : "?"}since=${encodeURIComponent(before)}`;
        link.textContent = link.dataset.words;
      }
      localStorage.setItem(key, link.dataset.seen);
    } catch { /* storage is off: the link leads to the list of editions */ }
  }
  document.querySelectorAll("form.day").forEach(startDay);
  document.querySelectorAll("table.sortable").forEach(startSort);
  document.addEventListener("click", (event) => {
    const target = event.target;
    if (!(target instanceof Element)) return;
    const figure = target.closest("a[data-over]");
    if (figure && !event.ctrlKey && !event.metaKey && !event.shiftKey) { event.preventDefault(); openOver(figure); }
    const png = target.closest("button[data-svg]");
    if (png) savePng(png);
    const copy = target.closest("button[data-copy]");
    if (copy) {
      navigator.clipboard.writeText(document.getElementById(copy.dataset.copy).textContent.trim());
      copy.textContent = copy.dataset.done;
    }
  });
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.matches("form.try")) { event.preventDefault(); tryCall(form); }
  });
  // A heading of a long document may be on another of its pages; the first page links to each.
  if (location.hash && document.querySelector(".pager") && !document.getElementById(decodeURI(location.hash.slice(1)))) {
    const leads = ({ hash, pathname, search }) =>
      hash === location.hash && pathname === location.pathname && search !== location.search;
    const link = [...document.links].find(leads);
    if (link || location.search) location.replace(link ? link.href : location.pathname + location.hash);
  }
  // The output of a running command; without scripts the page has a link to reload.
  const log = document.querySelector("pre[data-events]");
  if (log) {
    const events = new EventSource(log.dataset.events);
    events.onmessage = (event) => { log.textContent += event.data + "\n"; };
    events.addEventListener("end", () => { events.close(); location.reload(); });
  }
})();
