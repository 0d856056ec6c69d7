// Packs a folder with an archiver from npm: node write.cjs KIND FOLDER > ARCHIVE
// The packages are found through NODE_PATH.
const fs = require("node:fs");
const path = require("node:path");

function entries(folder, within = "") {
  return fs.readdirSync(path.join(folder, within)).sort().flatMap((part) => {
    const name = within ? `${within}/${part}` : part;
    const full = path.join(folder, name);
    const stat = fs.lstatSync(full);
    const below = stat.isDirectory() ? entries(folder, name) : [];
    const target = stat.isSymbolicLink() ? fs.readlinkSync(full) : null;
    const content = stat.isFile() ? fs.readFileSync(full) : Buffer.alloc(0);
    return [{ name, full, stat, target, content }, ...below];
  });
}

const DATE = new Date("2024-01-01T00:00:00Z");

const KINDS = {
  // node-tar, which npm packs with
  tar: (folder) => require("tar").create({ cwd: folder, gzip: true }, fs.readdirSync(folder).sort()).pipe(process.stdout),
  "tar-portable": (folder) =>
    require("tar").create({ cwd: folder, gzip: true, portable: true, prefix: "package" }, fs.readdirSync(folder).sort()).pipe(process.stdout),

  "tar-stream": (folder) => {
    const pack = require("tar-stream").pack();
    pack.pipe(process.stdout);
    for (const { name, stat, target, content } of entries(folder)) {
      const type = stat.isDirectory() ? "directory" : target === null ? "file" : "symlink";
      pack.entry({ name, type, linkname: target, mtime: DATE, mode: stat.mode & 0o777 }, content);
    }
    pack.finalize();
  },

  "archiver-tar": (folder) => archived("TarArchive", folder, { gzip: true }),
  "archiver-zip": (folder) => archived("ZipArchive", folder, { comment: "made by archiver" }),
  "archiver-zip64": (folder) => archived("ZipArchive", folder, { forceZip64: true, store: true }),

  jszip: (folder) => zipped(folder, {}),
  "jszip-stream": (folder) => zipped(folder, { streamFiles: true }),
  "jszip-unix": (folder) => zipped(folder, { platform: "UNIX" }),

  yazl: (folder) => yazl(folder, {}, {}),
  "yazl-zip64": (folder) => yazl(folder, { forceZip64Format: true }, { forceZip64Format: true }),

  fflate: (folder) => {
    const files = entries(folder).filter(({ stat }) => stat.isFile());
    process.stdout.write(require("fflate").zipSync(Object.fromEntries(files.map(({ name, content }) => [name, content])), { mtime: DATE }));
  },

  "adm-zip": (folder) => {
    const AdmZip = require("adm-zip");
    const archive = new AdmZip();
    archive.addLocalFolder(folder);
    process.stdout.write(archive.toBuffer());
  },
};

async function archived(kind, folder, options) {
  const archive = new (require("archiver")[kind])(options);
  archive.pipe(process.stdout);
  archive.directory(folder, false);
  await archive.finalize();
}

async function zipped(folder, options) {
  const archive = new (require("jszip"))();
  for (const { name, stat, target, content } of entries(folder)) {
    const unix = options.platform === "UNIX" ? { unixPermissions: stat.mode } : {};
    archive.file(name, target ?? content, { date: DATE, dir: stat.isDirectory(), createFolders: false, ...unix });
  }
  process.stdout.write(await archive.generateAsync({ type: "nodebuffer", compression: "DEFLATE", ...options }));
}

function yazl(folder, each, end) {
  const archive = new (require("yazl").ZipFile)();
  archive.outputStream.pipe(process.stdout);
  for (const { name, full, stat } of entries(folder)) {
    const options = { mtime: DATE, mode: stat.mode };
    if (stat.isDirectory()) archive.addEmptyDirectory(name, options);
    else archive.addReadStream(fs.createReadStream(full), name, { ...options, ...each });
  }
  archive.end(end);
}

const [kind, folder] = process.argv.slice(2);
KINDS[kind](folder);
