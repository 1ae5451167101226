// The page around the charts: sorted tables, engines and workloads to show, figures relative to
// the best. Follows charts.js.
class Table {
  constructor(table) {
    // A row and what is said below it move together.
    this.body = table.tBodies[0];
    this.frame = table.closest('.scroll');
    this.units = [];
    for (const row of this.body.rows) {
      if (row.classList.contains('more')) this.units.at(-1).push(row);
      else this.units.push([row]);
    }
    this.heads = all('thead th', table).filter((head) => head.colSpan === 1 && head.textContent.trim());
    this.texts = new Map();
    for (const head of this.heads) {
      const button = make('button', {type: 'button', className: 'sort'});
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener('click', () => this.sort(head));
    }
  }

  cell(head, [row]) {
    return row.cells[head.dataset.column ?? head.cellIndex];
  }

  sort(head) {
    const first = head.dataset.best === 'max' ? 'descending' : 'ascending';
    const other = first === 'ascending' ? 'descending' : 'ascending';
    const order = head.ariaSort === first ? other : first;
    this.heads.forEach((each) => each.removeAttribute('aria-sort'));
    head.ariaSort = order;
    const number = (unit) => this.cell(head, unit).dataset.value;
    const numeric = this.units.some((unit) => number(unit) !== undefined);
    const key = (unit) => (numeric ? number(unit) : this.cell(head, unit).textContent.trim());
    const sign = order === 'ascending' ? 1 : -1;
    const compare = (a, b) => (numeric ? a - b : a.localeCompare(b, 'en', {numeric: true}));
    this.units.sort((a, b) => {
      const [x, y] = [key(a), key(b)];
      // What has no figure is last in either order.
      if (x === undefined || y === undefined) return (x === undefined) - (y === undefined);
      return sign * compare(x, y);
    });
    this.body.append(...this.units.flat());
  }

  draw() {
    for (const unit of this.units) {
      const {engine, workload} = unit[0].dataset;
      const hidden = state.hidden.has(engine) || Boolean(workload && state.workload && workload !== state.workload);
      unit.forEach((row) => { row.hidden = hidden; });
    }
    const parts = [this.frame, ...(this.frame.previousElementSibling?.matches('h4') ? [this.frame.previousElementSibling] : [])];
    parts.forEach((part) => { part.hidden = this.units.length > 0 && this.units.every(([row]) => row.hidden); });
    for (const head of this.heads) {
      // Rounds are relative to the best median, which is another column's.
      const ranked = head.dataset.of ? this.heads.find((each) => each.dataset.column === head.dataset.of) : head;
      if (ranked.dataset.best) this.relate(head, ranked);
    }
  }

  /** Show a column's figures as they are, or divided by the best of the column that ranks it. */
  relate(head, ranked) {
    const cells = (of) => this.units.map((unit) => this.cell(of, unit)).filter((cell) => cell.dataset.value);
    const sound = cells(ranked).filter((cell) => !cell.closest('.wrong, .failed') && cell.dataset.value > 0);
    const figure = (cell) => Number(cell.dataset.value);
    const better = (a, b) => (ranked.dataset.best === 'max' ? figure(b) > figure(a) : figure(b) < figure(a));
    const best = sound.length ? sound.reduce((a, b) => (better(a, b) ? b : a)) : null;
    for (const cell of cells(head)) {
      if (!this.texts.has(cell)) this.texts.set(cell, cell.textContent);
      const {value, high} = cell.dataset;
      const [low, top] = [value, high ?? value].map((each) => best && ratio(each / figure(best)));
      const said = low === top ? low : `${low} .. ${top}`;
      const relative = state.relative && best && (head === ranked || high);
      cell.textContent = relative ? said : this.texts.get(cell);
    }
    const named = best && `1 × is ${this.texts.get(best) ?? best.textContent} of ${best.closest('tr').dataset.engine}`;
    head.querySelector('button').title = state.relative && named ? named : '';
  }
}

document.body.append(tip);
const charts = all('figure').filter((f) => f.querySelector('.chart-data')).map((f) => new Chart(f));
const tables = all('table').map((table) => new Table(table));
const controls = document.getElementById('controls');
const boxes = all('input[type=checkbox]', controls);
const select = controls.querySelector('select');
const relative = document.getElementById('relative');
controls.hidden = false;

function update() {
  state.hidden = new Set(boxes.filter((box) => !box.checked).map((box) => box.value));
  state.workload = select ? select.value : '';
  all('section[data-workload]').forEach((section) => {
    section.hidden = Boolean(state.workload) && section.dataset.workload !== state.workload;
  });
  const shown = boxes.length - state.hidden.size;
  controls.querySelector('summary').textContent = `Engines: ${state.hidden.size ? `${shown} of ${boxes.length}` : 'all'}`;
  relative.ariaPressed = String(state.relative);
  controls.querySelector('[role=status]').textContent = state.relative
    ? `1 × is the best of a ranking or table: the highest throughput, the shortest time, the least memory of all results that are not wrong${state.hidden.size ? ', those of hidden engines too' : ''}.` : '';
  [...charts, ...tables].forEach((each) => each.draw());
}

document.addEventListener('pointerdown', (event) => {
  const chooser = controls.querySelector('details');
  if (!chooser.contains(event.target)) chooser.open = false;
});
boxes.forEach((box) => box.addEventListener('change', update));
select?.addEventListener('change', update);
all('button[data-check]', controls).forEach((button) => button.addEventListener('click', () => {
  boxes.forEach((box) => { box.checked = button.dataset.check === 'all'; });
  update();
}));
relative.addEventListener('click', () => {
  state.relative = !state.relative;
  update();
});
