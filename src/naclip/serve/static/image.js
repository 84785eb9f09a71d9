// The image: dropped, pasted, chosen, or an example.

const MAX_PIXELS = 2_000_000; // CLIP reads some 336 pixels of the short side: more only takes time
// What the service reads too; anything else that this browser shows goes over as PNG.
const SENT = ["png", "jpeg", "webp", "gif", "bmp", "tiff", "avif"].map((kind) => `image/${kind}`);

// -> {blob, bitmap, width, height, name, note, id}; EXIF rotation is applied by the browser.
export async function open(blob, name) {
  let bitmap;
  try {
    bitmap = await createImageBitmap(blob);
  } catch {
    throw new Error(`${name}: not an image that this browser can read. Try PNG, JPEG or WebP.`);
  }
  const found = { blob, bitmap, name, width: bitmap.width, height: bitmap.height, note: "", id: "" };
  const factor = Math.min(1, Math.sqrt(MAX_PIXELS / (bitmap.width * bitmap.height)));
  if (factor === 1 && SENT.includes(blob.type)) return found;
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(1, Math.round(bitmap.width * factor));
  canvas.height = Math.max(1, Math.round(bitmap.height * factor));
  const context = canvas.getContext("2d");
  context.imageSmoothingQuality = "high";
  context.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  const smaller = await new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
  return {
    ...found, blob: smaller, bitmap: await createImageBitmap(smaller),
    width: canvas.width, height: canvas.height,
    note: factor === 1 ? "" : `shown and exported at ${canvas.width}×${canvas.height}, from ${bitmap.width}×${bitmap.height}`,
  };
}

export function listen(take) {
  const frame = document.getElementById("frame");
  const file = document.getElementById("file");
  for (const button of document.querySelectorAll("[data-choose]")) {
    button.addEventListener("click", () => file.click());
  }
  file.addEventListener("change", () => {
    if (file.files[0]) take(file.files[0], file.files[0].name);
    file.value = "";
  });
  addEventListener("dragover", (event) => { event.preventDefault(); frame.classList.add("over"); });
  addEventListener("dragleave", (event) => { if (!event.relatedTarget) frame.classList.remove("over"); });
  addEventListener("drop", (event) => {
    event.preventDefault();
    frame.classList.remove("over");
    const dropped = event.dataTransfer.files[0];
    if (dropped) take(dropped, dropped.name);
  });
  addEventListener("paste", (event) => {
    const pasted = [...event.clipboardData.files].find((item) => item.type.startsWith("image/"));
    if (pasted) take(pasted, "pasted.png");
  });
}
