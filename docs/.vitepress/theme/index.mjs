/** The default theme without its web fonts: a reader of these pages has fonts. */
export { default } from 'vitepress/theme-without-fonts';
