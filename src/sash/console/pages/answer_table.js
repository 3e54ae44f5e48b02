// A table of text. Rows that come and go are animated, cells whose text changes flash, a click on a header sorts.
export default {
  template: `
    <div class="answer">
      <table :key="epoch">
        <thead><tr>
          <th v-for="(c, i) in columns" :key="i" :class="{number: c.number}" :title="c.type" @click="order(i)"
              :aria-sort="sorted === i ? (down ? 'descending' : 'ascending') : null">{{ c.name }}<span
              class="order">{{ sorted === i ? (down ? " ↓" : " ↑") : "" }}</span></th>
        </tr></thead>
        <TransitionGroup tag="tbody" name="row" :css="true">
          <tr v-for="row in visible" :key="row.key" :data-key="row.key">
            <td v-for="(text, i) in row.cells" :key="i"
                :class="{number: columns[i] && columns[i].number, absent: text === 'NULL', flash: flashes[row.key + ' ' + i]}">{{ text }}</td>
          </tr>
        </TransitionGroup>
      </table>
      <div v-if="!rows.length" class="empty">{{ empty }}</div>
    </div>
  `,
  props: { columns: Array, rows: Array, epoch: Number, empty: String },
  data() {
    return { sorted: null, down: false, flashes: {} };
  },
  computed: {
    visible() {
      if (this.sorted === null || !this.columns[this.sorted]) return this.rows;
      const i = this.sorted;
      const number = this.columns[i].number;
      const sign = this.down ? -1 : 1;
      const compare = (a, b) => {
        if (a === "NULL" || b === "NULL") return (a === "NULL") - (b === "NULL");
        return sign * (number ? Number(a) - Number(b) : a < b ? -1 : a > b ? 1 : 0);
      };
      return [...this.rows].sort((a, b) => compare(a.cells[i], b.cells[i]));
    },
  },
  watch: {
    epoch() {
      this.flashes = {};
      this.replaced = true;
    },
    rows(now, before) {
      if (this.replaced) {
        this.replaced = false;
        return;
      }
      const old = new Map((before || []).map((row) => [row.key, row.cells]));
      const flashes = {};
      for (const row of now) {
        const cells = old.get(row.key);
        if (cells) row.cells.forEach((text, i) => { if (text !== cells[i]) flashes[row.key + " " + i] = true; });
      }
      this.flashes = flashes;
      clearTimeout(this.calm);
      this.calm = setTimeout(() => (this.flashes = {}), 900);
    },
  },
  unmounted() {
    clearTimeout(this.calm);
  },
  methods: {
    order(i) {
      if (this.sorted !== i) [this.sorted, this.down] = [i, false];
      else if (!this.down) this.down = true;
      else this.sorted = null;
    },
  },
};
