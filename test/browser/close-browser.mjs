export default async function closeBrowser() {
  await globalThis.browserServer?.close();
}
