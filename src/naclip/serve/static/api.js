// Requests to the service that this page came from; nothing else is ever asked.

export class Problem extends Error {
  constructor(problem, status) {
    super(problem.detail || `the service answered ${status}`);
    Object.assign(this, { kind: problem.type || "", field: problem.field || "", status });
  }
}

const dialog = document.getElementById("token-dialog");
let asking = null;

// Once for all requests that wait for it; false when the person would rather not.
function askToken(wrong) {
  asking ??= new Promise((resolve) => {
    document.getElementById("token-wrong").hidden = !wrong;
    dialog.returnValue = document.getElementById("token").value = "";
    dialog.addEventListener("close", () => {
      sessionStorage.setItem("naclip-token", document.getElementById("token").value);
      asking = null;
      resolve(dialog.returnValue === "ok");
    }, { once: true });
    dialog.showModal();
  });
  return asking;
}

async function reach(path, options) {
  try {
    return await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The service does not answer. Is naclip serve still running?");
  }
}

export async function request(path, options = {}) {
  for (;;) {
    const token = sessionStorage.getItem("naclip-token");
    const headers = { ...options.headers, ...(token && { Authorization: `Bearer ${token}` }) };
    const response = await reach(path, { ...options, headers });
    if (response.status === 401 && await askToken(Boolean(token))) continue;
    if (response.status === 429) {
      await new Promise((resolve) => setTimeout(resolve, 1000 * (response.headers.get("Retry-After") || 1)));
      options.signal?.throwIfAborted();
      continue;
    }
    if (!response.ok) {
      throw new Problem(await response.json().catch(() => ({})), response.status);
    }
    return response;
  }
}

export const getJson = async (path) => (await request(path)).json();

// An image goes over once; later requests name its hash until the service has forgotten it.
export async function ask(path, image, fields, signal) {
  for (const send of image.id ? ["id", "file"] : ["file"]) {
    try {
      return await request(path, { method: "POST", signal, ...bodyOf(image, fields, send) });
    } catch (error) {
      if (send === "id" && String(error.kind).endsWith("image-unknown")) continue;
      throw error;
    }
  }
}

function bodyOf(image, fields, send) {
  if (send === "id") {
    const body = JSON.stringify({ ...fields, image_id: image.id });
    return { body, headers: { "Content-Type": "application/json" } };
  }
  const form = new FormData();
  form.append("image", image.blob, "image");
  for (const [name, value] of Object.entries(fields)) {
    for (const item of Array.isArray(value) ? value : [value]) form.append(name, item);
  }
  return { body: form };
}

const VIEWS = { uint8: Uint8Array, uint16: Uint16Array };

// The bundle of /v1/segment?format=maps: a header's length, the header, arrays in its order.
export async function readMaps(response) {
  const buffer = await response.arrayBuffer();
  const length = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  let offset = 4 + length;
  for (const { name, dtype, shape } of header.arrays) {
    const count = shape.reduce((a, b) => a * b, 1);
    header[name] = new VIEWS[dtype](buffer, offset, count);
    header[name + "Shape"] = shape;
    offset += header[name].byteLength;
  }
  return header;
}
