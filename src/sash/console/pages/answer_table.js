// A table of text. Rows that come and go are animated, cells whose text changes flash, a head sorts by its column.
export default {
  template: `
    <div class="answer" tabindex="0" role="region" aria-label="Answer">
      <table :key="epoch">
        <thead><tr>
          <th v-for="(c, i) in columns" :key="i" scope="col" :class="{number: c.number}"
              :aria-sort="sorted === i ? (down ? 'descending' : 'ascending') : null"><button type="button"
              :title="c.type" @click="order(i)">{{ c.name }}<span
              class="order">{{ sorted === i ? (down ? " ↓" : " ↑") : "" }}</span></button></th>
        </tr></thead>
        <TransitionGroup tag="tbody" name="row" :css="true">
          <tr v-for="row in visible" :key="row.key" :data-key="row.key">
            <td v-for="(text, i) in row.cells" :key="i"
                :class="{number: columns[i] && columns[i].number, absent: row.absent.includes(i), flash: flashes[row.key + ' ' + i]}">{{ text }}</td>
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
      // Absent values are last in both orders, and NaN is larger than any number.
      const value = (row) => (row.cells[i] === "NaN" ? Infinity : Number(row.cells[i]));
      const compare = (a, b) => {
        const absent = a.absent.includes(i) - b.absent.includes(i);
        if (absent || a.absent.includes(i)) return absent;
        if (number) return value(a) === value(b) ? 0 : sign * (value(a) < value(b) ? -1 : 1);
        return sign * (a.cells[i] < b.cells[i] ? -1 : a.cells[i] > b.cells[i] ? 1 : 0);
      };
      return [...this.rows].sort(compare);
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
