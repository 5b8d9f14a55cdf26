// Light or dark: as the system has it, until the reader chooses. Runs before the page is drawn.

(() => {
  const root = document.documentElement;
  const system = matchMedia('(prefers-color-scheme: dark)');
  const stored = () => {
    try {
      return localStorage.getItem('theme');
    } catch {
      return null;
    }
  };
  let chosen = stored();
  const isDark = () => (chosen === null ? system.matches : chosen === 'dark');

  /** Pictures that have a variant for the dark follow the choice, too. */
  function apply() {
    root.dataset.theme = isDark() ? 'dark' : 'light';
    for (const source of document.querySelectorAll('source[media*="prefers-color-scheme"], source[data-dark]')) {
      source.dataset.dark ??= String(source.media.includes('dark'));
      source.media = (source.dataset.dark === 'true') === isDark() ? 'all' : 'not all';
    }
  }

  apply();
  system.addEventListener('change', apply);
  document.addEventListener('DOMContentLoaded', () => {
    apply();
    const button = document.querySelector('button.theme');
    button.hidden = false;
    button.addEventListener('click', () => {
      chosen = isDark() ? 'light' : 'dark';
      try {
        localStorage.setItem('theme', chosen);
      } catch {
        // Where nothing may be stored, the choice is that of this page.
      }
      apply();
    });
    const menu = document.querySelector('details.menu');
    if (matchMedia('(max-width: 60rem)').matches) menu.open = false;
    document.querySelector('nav [aria-current]')?.scrollIntoView({ block: 'nearest' });
    scrollTo(0, location.hash === '' ? 0 : scrollY);
  });
})();
