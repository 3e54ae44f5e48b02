// Adds a source of completions to a CodeMirror editor of the same page, names of streams and of their columns, and lets it
// follow the page from light to dark.
import * as CM from "nicegui-codemirror";

export default {
  template: `<span style="display: none" :data-ready="ready"></span>`,
  props: { editor: Number, catalog: Array },
  data() {
    return { ready: false };
  },
  async mounted() {
    // Elements can be found only after the whole page is mounted.
    let component = null;
    while (!component) {
      await new Promise((resolve) => setTimeout(resolve, 20));
      component = getElement(this.editor);
    }
    const view = component.editor || (await component.editorPromise);
    const source = (context) => this.complete(context);
    view.dispatch({
      effects: CM.StateEffect.appendConfig.of([
        CM.EditorState.languageData.of(() => [{ autocomplete: source }]),
        CM.EditorView.contentAttributes.of({ "aria-label": "SQL" }),
      ]),
    });
    const follow = () => component.setTheme(document.body.classList.contains("body--dark") ? "oneDark" : "vscodeLight");
    this.observer = new MutationObserver(follow);
    this.observer.observe(document.body, { attributeFilter: ["class"] });
    follow();
    this.ready = true;
  },
  unmounted() {
    this.observer?.disconnect();
  },
  methods: {
    complete(context) {
      const word = context.matchBefore(/[\w.]*/);
      if (!word || (word.from === word.to && !context.explicit)) return null;
      const text = context.state.doc.toString();
      const before = text.slice(0, word.from);
      const relations = this.catalog.map((entry) => ({ label: entry.name, type: "class", detail: entry.kind, boost: 1 }));
      const dot = word.text.lastIndexOf(".");
      if (dot >= 0) {
        const entry = this.named(text, word.text.slice(0, dot));
        return entry ? { from: word.from + dot + 1, options: this.columns(entry) } : null;
      }
      if (/\b(from|join|into)\s+$/i.test(before)) return { from: word.from, options: relations };
      const used = this.catalog.filter((entry) => new RegExp("\\b" + this.literal(entry.name) + "\\b", "i").test(text));
      const columns = (used.length ? used : this.catalog).flatMap((entry) => this.columns(entry));
      const labels = new Map([...columns, ...relations].map((option) => [option.label, option]));
      return { from: word.from, options: [...labels.values()] };
    },
    columns(entry) {
      return entry.columns.map((column) => ({ label: column.name, type: "property", detail: column.type, boost: 2 }));
    },
    // The relation of a name: its own, or an alias after its window clause.
    named(text, name) {
      const own = this.catalog.find((entry) => entry.name.toLowerCase() === name.toLowerCase());
      if (own) return own;
      return this.catalog.find((entry) =>
        new RegExp("\\b" + this.literal(entry.name) + "\\s*(\\[[^\\]]*\\])?\\s*(as\\s+)?" + this.literal(name) + "\\b", "i").test(text),
      );
    },
    literal(name) {
      return name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
    },
  },
};
