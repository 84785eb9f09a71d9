// Pixels from maps: labels under a threshold, masks with contours, heat.

// Label of each pixel, -1 where it is background: label 0 of a vocabulary that has one, and
// whatever is less likely than the threshold.
export function labelsAt(maps, threshold) {
  const { labels, probability } = maps;
  const limit = threshold * 65535;
  const found = new Int32Array(labels.length);
  for (let i = 0; i < labels.length; i++) {
    const background = probability[i] < limit || (maps.has_background && labels[i] === 0);
    found[i] = background ? -1 : labels[i];
  }
  return found;
}

export function coverage(labels, count) {
  const found = new Float64Array(count + 1); // the last: background
  for (const label of labels) found[label < 0 ? count : label] += 1;
  return found.map((pixels) => pixels / labels.length);
}

export function paintMask(data, labels, width, colours, shown, opacity, from = 0, to = width) {
  const height = labels.length / width;
  for (let y = 0; y < height; y++) {
    for (let x = from; x < to; x++) {
      const i = y * width + x;
      const label = labels[i];
      const weight = label < 0 ? 0 : shown[label];
      if (!weight) { data[4 * i + 3] = 0; continue; }
      const edge = (x + 1 < width && labels[i + 1] !== label) || (x > 0 && labels[i - 1] !== label)
        || (y + 1 < height && labels[i + width] !== label) || (y > 0 && labels[i - width] !== label);
      const colour = colours[label];
      data[4 * i] = colour[0]; data[4 * i + 1] = colour[1]; data[4 * i + 2] = colour[2];
      data[4 * i + 3] = 255 * weight * (edge ? Math.min(1, opacity * 1.6) : opacity);
    }
  }
}

// Viridis by a few of its colours.
const STOPS = [[68, 1, 84], [65, 68, 135], [42, 120, 142], [34, 168, 132], [122, 209, 81], [253, 231, 37]];
export const VIRIDIS = Array.from({ length: 256 }, (_, i) => {
  const at = (i / 255) * (STOPS.length - 1);
  const low = Math.min(STOPS.length - 2, Math.floor(at));
  return STOPS[low].map((value, c) => Math.round(value + (STOPS[low + 1][c] - value) * (at - low)));
});

// values: numbers of rows x columns -> a small canvas, from `low` (dark) to `high` (bright).
export function heatCanvas(values, rows, columns, low, high, alpha = 255) {
  const canvas = document.createElement("canvas");
  canvas.width = columns; canvas.height = rows;
  const context = canvas.getContext("2d");
  const image = context.createImageData(columns, rows);
  for (let i = 0; i < rows * columns; i++) {
    const level = Math.max(0, Math.min(255, Math.round(((values[i] - low) / (high - low || 1)) * 255)));
    image.data.set(VIRIDIS[level], 4 * i);
    image.data[4 * i + 3] = alpha;
  }
  context.putImageData(image, 0, 0);
  return canvas;
}
