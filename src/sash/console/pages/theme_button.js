// A button for light and dark. The choice is kept in the browser, so that it holds on all pages.
const NEXT = { system: "dark", dark: "light", light: "system" };
const ICON = { system: "brightness_auto", dark: "dark_mode", light: "light_mode" };

export default {
  template: `<q-btn flat round dense color="inherit" :icon="icon" :title="title" :aria-label="title" @click="turn" />`,
  data() {
    return { theme: localStorage.getItem("sash-theme") in NEXT ? localStorage.getItem("sash-theme") : "system" };
  },
  computed: {
    icon() {
      return ICON[this.theme];
    },
    title() {
      return "Colours: " + this.theme;
    },
  },
  mounted() {
    this.apply();
  },
  methods: {
    turn() {
      this.theme = NEXT[this.theme];
      localStorage.setItem("sash-theme", this.theme);
      this.apply();
    },
    apply() {
      setDark(this.theme === "system" ? null : this.theme === "dark");
    },
  },
};
