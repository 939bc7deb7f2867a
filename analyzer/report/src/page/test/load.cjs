// SPDX-License-Identifier: MIT OR Apache-2.0
// Loads the page's scripts as the page does, one after the other in one scope, and returns what they define.
"use strict";

const fs = require("node:fs");
const path = require("node:path");

const FOLDER = path.join(__dirname, "..", "js");

/** `names`: the scripts, without their ending; each defines a constant of its own name. */
module.exports = (...names) => {
  const text = names.map((name) => fs.readFileSync(path.join(FOLDER, `${name}.js`), "utf8").replace('"use strict";', "")).join("\n");
  return new Function(`"use strict";\n${text}\nreturn { ${names.join(", ")} };`)();
};
