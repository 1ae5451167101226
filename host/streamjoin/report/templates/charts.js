// The charts of a report: points under the pointer, axes, files to take away. The page is whole
// without this script: its charts are drawn, and the script moves their marks by the figures that
// stand beside each chart. What is shown is in `state`, which page.js sets.
const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const make = (name, properties = {}) => Object.assign(document.createElement(name), properties);
const state = {hidden: new Set(), workload: '', relative: false};
const ratio = (value) => `${Number(value < 1000 ? value.toPrecision(3) : value.toFixed(0))}\u00a0×`;

/** Pixels of a value on an axis, and back; what lies below a logarithmic axis is at its start. */
function scale([low, high, log], start, length) {
  const along = log ? Math.log : Number;
  const per = length / (along(high) - along(low));
  const place = (value) => start + per * (along(log ? Math.max(value, low) : value) - along(low));
  place.back = (px) => {
    const value = (px - start) / per + along(low);
    return log ? Math.exp(value) : value;
  };
  return place;
}

/** One of the two drawings of a chart: the wide one or the narrow one. */
class Drawing {
  constructor(chart, svg, layout) {
    Object.assign(this, {chart, svg}, layout);
    this.size = svg.viewBox.baseVal;
    this.height = this.size.height;
    this.parts = new Map();
    for (const part of all('[id]', svg)) {
      const named = part.id.match(/-(mark|span|row)-(head-)?(\d+)(?:-|$)/);
      if (!named) continue;
      const key = `${named[2] ? 'head' : named[1] === 'row' ? 'words' : 'marks'}${named[3]}`;
      this.parts.set(key, [...(this.parts.get(key) || []), part]);
    }
    this.frame = svg.querySelector('[id$="-row-frame"] path');
    this.axis = svg.querySelector(`[id$="matplotlib.axis_${chart.along === 'y' ? 2 : 1}"]`);
    const groups = all(':scope > g', this.axis);
    this.tick = groups.find((g) => g.querySelector('path') && g.querySelector('text'));
    this.title = groups.find((g) => !g.querySelector('path') && g.querySelector('text'));
    this.drawn = new Map(all('path, use', svg).map((e) => [e, e.getAttribute('d') || e.getAttribute('x')]));
    svg.tabIndex = 0;
    svg.setAttribute('aria-describedby', 'keys');
    svg.addEventListener('pointermove', (event) => this.hover(event));
    svg.addEventListener('pointerleave', () => hideTip());
    svg.addEventListener('blur', () => hideTip());
    svg.addEventListener('keydown', (event) => this.walk(event));
  }

  /** Where a point stands now. */
  place(series, [, values, , base, at], row) {
    const relative = this.chart.way.startsWith('relative') && base ? base : 1;
    const [across, up] = this.chart.along === 'y' ? [1, relative] : [relative, 1];
    return {
      x: this.across((at ?? values[0]) / across),
      y: this.rows ? this.middles[row] : this.up(values[1] / up),
    };
  }

  draw() {
    const {chart} = this, [left, top, width, height] = this.box;
    const axis = this.axes[chart.way];
    this.across = scale(axis && chart.along === 'x' ? axis.limits : this.x, left, width);
    this.up = scale(axis && chart.along === 'y' ? axis.limits : this.y, top + height, -height);
    const closed = this.rows ? this.closeRows() : 0;
    chart.series.forEach((series, row) => this.drawSeries(series, row));
    if (axis) this.drawAxis(axis, closed);
    if (this.frame) this.frame.setAttribute('d', `M ${left} ${top + height - closed} V ${top}`);
    this.svg.setAttribute('viewBox', `0 0 ${this.size.width} ${this.height - closed}`);
  }

  /** Hide the rows of hidden engines and close the gaps; return the height that is saved. */
  closeRows() {
    let closed = 0, end = 0;
    const {series} = this.chart;
    const put = (key, shown) => (this.parts.get(key) || []).forEach((part) => {
      part.style.display = shown ? '' : 'none';
      part.setAttribute('transform', `translate(0 ${-closed})`);
    });
    this.middles = this.rows.map(([top, bottom, middle], row) => {
      const shown = visible(series[row]);
      if (top > end) {
        const measured = (each) => each.ranking === 'measured';
        const any = series.some((s) => measured(s) === measured(series[row]) && visible(s));
        put(`head${row}`, any);
        if (!any) closed += top - end;
      }
      put(`words${row}`, shown);
      put(`marks${row}`, shown);
      const place = middle - closed;
      if (!shown) closed += bottom - top;
      end = bottom;
      return place;
    });
    return closed;
  }

  drawSeries(series, row) {
    const marks = this.parts.get(`marks${series.index}`) || [];
    const words = this.parts.get(`words${series.index}`) || [];
    if (!this.rows) {
      marks.forEach((mark) => { mark.style.display = visible(series) ? '' : 'none'; });
      words.forEach((word) => { word.style.opacity = visible(series) ? '' : 0.3; });
      marks.forEach((mark) => this.drawLine(mark, series, row));
      return;
    }
    const {chart} = this, base = series.points[0]?.[3];
    const relative = chart.way.startsWith('relative') && base;
    const before = scale(this.x, this.box[0], this.box[2]);
    const move = (px) => this.across(
      px <= this.box[0] + 0.01 ? 0 : before.back(px) / (relative ? base : 1));
    for (const part of marks.flatMap((mark) => all('path, use', mark))) {
      if (part.closest('defs')) continue;
      const drawn = this.drawn.get(part), changed = chart.way !== chart.first;
      if (part.localName === 'use') part.setAttribute('x', changed ? move(+drawn) : drawn);
      else part.setAttribute('d', changed ? drawn.replace(/([ML]) (\S+)/g, (_, c, x) => `${c} ${move(+x)}`) : drawn);
    }
    const value = words.at(-1)?.querySelector('text');
    if (!series.shown.length || !value) return;
    value.dataset.value ??= value.textContent;
    const said = series.shown.map(([name, figure]) => name + ratio(figure / base)).join(', ');
    value.textContent = relative ? (series.verdict === 'wrong' ? `wrong: ${said}` : said) : value.dataset.value;
  }

  drawLine(mark, series, row) {
    const places = series.points.map((point) => this.place(series, point, row));
    const line = all('path', mark).find((path) => !path.closest('defs'));
    line?.setAttribute('d', places.map(({x, y}, i) => `${i ? 'L' : 'M'} ${x} ${y}`).join(' '));
    const markers = all('use', mark);
    const every = markers.length < places.length ? Math.max(1, Math.floor(places.length / 6)) : 1;
    markers.forEach((marker, i) => {
      const {x, y} = places[Math.min(i * every, places.length - 1)];
      marker.setAttribute('x', x);
      marker.setAttribute('y', y);
    });
  }

  drawAxis(axis, closed) {
    if (!this.tick) return;
    const [left, top, width, height] = this.box, bottom = top + height - closed;
    const ticks = axis.ticks.map(([value, said]) => {
      const tick = this.tick.cloneNode(true), text = tick.querySelector('text');
      const path = tick.querySelector('path');
      path.removeAttribute('clip-path');
      if (this.chart.along === 'y') {
        const y = this.up(value);
        path.setAttribute('d', `M ${left} ${y} H ${left + width}`);
        text.setAttribute('y', y + 4);
      } else {
        const x = this.across(value);
        path.setAttribute('d', `M ${x} ${bottom} V ${top}`);
        text.setAttribute('x', x);
        text.setAttribute('transform', `translate(0 ${-closed})`);
      }
      text.textContent = said;
      return tick;
    });
    const title = this.title && this.title.cloneNode(true);
    if (title && axis.name) {
      title.querySelector('text').textContent = axis.name;
      title.setAttribute('transform', `translate(0 ${-closed})`);
    }
    this.axis.replaceChildren(...ticks, ...(title ? [title] : []));
  }

  // ---- points ------------------------------------------------------------------------------

  points() {
    if (!this.across) this.draw();
    return this.chart.series.flatMap((series, row) => (visible(series)
      ? series.points.map((point) => ({series, point, ...this.place(series, point, row)})) : []));
  }

  hover(event) {
    const {x, y} = new DOMPoint(event.clientX, event.clientY).matrixTransform(this.svg.getScreenCTM().inverse());
    // In rows the height says which is meant, wherever in the row the pointer is.
    const far = (p) => Math.hypot((p.x - x) * (this.rows ? 0.1 : 1), p.y - y);
    const near = this.points().reduce((best, p) => (best && far(best) <= far(p) ? best : p), null);
    if (near && far(near) < 40) this.show(near);
    else hideTip();
  }

  walk(event) {
    const points = this.points(), now = points.findIndex((p) => p.point === tip.point);
    const beside = (step) => {
      const series = [...new Set(points.map((p) => p.series))];
      const next = series[series.indexOf(points[now]?.series) + step];
      const place = points[now]?.series.points.indexOf(tip.point) ?? 0;
      const ends = points.filter((p) => p.series === next);
      return points.indexOf(ends[Math.min(place, ends.length - 1)]);
    };
    const goals = {
      ArrowRight: () => now + 1, ArrowLeft: () => now - 1, ArrowDown: () => beside(1),
      ArrowUp: () => beside(-1), Home: () => 0, End: () => points.length - 1,
    };
    if (event.key === 'Escape') hideTip();
    const goal = points[goals[event.key]?.()];
    if (event.key in goals) event.preventDefault();
    if (goal) this.show(goal);
  }

  show({series, point, x, y}) {
    const [name, values, said, base] = point, {chart} = this;
    if (tip.point !== point) {
      const figure = values[chart.along === 'y' ? 1 : 0];
      const share = base && chart.way.startsWith('relative') ? `, ${ratio(figure / base)} the best` : '';
      const what = chart.workload && name ? `${name} ` : '';
      const ranking = series.ranking === 'measured' ? '' : ` (${series.ranking})`;
      const lines = [series.label + ranking, what + said + share, chart.workload || name];
      tip.replaceChildren(...lines.map((line) => make('div', {textContent: line})));
      tip.point = point;
    }
    ring.setAttribute('transform', `translate(${x} ${y})`);
    this.svg.append(ring);
    const at = new DOMPoint(x, y).matrixTransform(this.svg.getScreenCTM());
    tip.hidden = false;
    const right = Math.min(at.x + 14, innerWidth - tip.offsetWidth - 8);
    const above = at.y - tip.offsetHeight - 14;
    tip.style.left = `${Math.max(8, right)}px`;
    tip.style.top = `${above < 8 ? at.y + 16 : above}px`;
  }
}

class Chart {
  constructor(figure) {
    Object.assign(this, JSON.parse(figure.querySelector('.chart-data').textContent));
    this.figure = figure;
    this.heading = figure.previousElementSibling;
    this.log = this.first === 'log';
    this.drawings = ['wide', 'narrow'].map(
      (name) => new Drawing(this, figure.querySelector(`svg.${name}`), this[name]));
    const tools = figure.querySelector('.tools');
    tools.hidden = false;
    const [log, svg, csv] = all('button', tools);
    log.hidden = !('log' in this.wide.axes && 'linear' in this.wide.axes);
    log.ariaPressed = String(this.log);
    log.addEventListener('click', () => {
      this.log = !this.log;
      log.ariaPressed = String(this.log);
      this.draw();
    });
    svg.addEventListener('click', () => save(`${this.heading.id}.svg`, 'image/svg+xml', this.asSvg()));
    csv.addEventListener('click', () => save(`${this.heading.id}.csv`, 'text/csv', this.asCsv()));
  }

  /** The axis that is asked for: linear or log, relative where the chart can be. */
  get way() {
    const way = this.log ? 'log' : 'linear', relative = `relative ${way}`;
    return state.relative && relative in this.wide.axes ? relative : way;
  }

  draw() {
    hideTip();
    this.drawings.forEach((drawing) => drawing.draw());
    const empty = !this.series.some(visible);
    [this.figure, this.heading].forEach((part) => { part.hidden = empty; });
  }

  /** The drawing that is seen, with its colours written out. */
  asSvg() {
    hideTip();
    const {svg} = this.drawings.find((d) => d.svg.getBoundingClientRect().width) || this.drawings[0];
    const copy = svg.cloneNode(true), {width, height} = svg.viewBox.baseVal;
    all('[style*="display: none"]', copy).forEach((part) => part.remove());
    const attributes = {xmlns: 'http://www.w3.org/2000/svg', width, height};
    Object.entries(attributes).forEach(([name, value]) => copy.setAttribute(name, value));
    all('[class]', copy).forEach((part) => {
      part.style.cssText = `${styles.get(part.getAttribute('class'))}; ${part.style.cssText}`;
      part.removeAttribute('class');
    });
    copy.style.cssText = 'font-family: system-ui, sans-serif; background: var(--paper); overflow: visible';
    const root = getComputedStyle(document.documentElement);
    return new XMLSerializer().serializeToString(copy)
      .replace(/var\((--[\w-]+)\)/g, (_, name) => root.getPropertyValue(name).trim());
  }

  /** Every point of the engines that are shown, in units. */
  asCsv() {
    const rows = this.series.filter(visible).flatMap((s) => s.points.map(([name, values]) => (
      this.workload ? [this.workload, s.label, s.ranking, s.verdict, name] : [name, s.label, s.ranking, s.verdict, '']
    ).concat(values)));
    const quoted = (cell) => (/[",\r\n]/.test(cell) ? `"${String(cell).replaceAll('"', '""')}"` : cell);
    return [['workload', 'engine', 'ranking', 'verdict', 'point', ...this.columns], ...rows]
      .map((row) => `${row.map(quoted).join(',')}\r\n`).join('');
  }
}

/** What the drawings' classes stand for. */
const styles = new Map([...document.getElementById('drawn').sheet.cssRules].map(
  (rule) => [rule.selectorText.split('.').at(-1), rule.style.cssText]));

function save(name, type, text) {
  const link = make('a', {href: URL.createObjectURL(new Blob([text], {type})), download: name});
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

const visible = (series) => !state.hidden.has(series.engine);
const tip = make('div', {id: 'tip', role: 'status', hidden: true});
const ring = document.createElementNS('http://www.w3.org/2000/svg', 'circle');
ring.setAttribute('r', 8);
ring.setAttribute('class', 'ring');
function hideTip() {
  tip.hidden = true;
  tip.point = null;
  ring.remove();
}
