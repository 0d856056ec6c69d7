// Packs a folder with Java's own zip writer or Apache Commons Compress: java -cp JAR Write.java KIND FOLDER ARCHIVE
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Collectors;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;
import org.apache.commons.compress.archivers.tar.TarArchiveEntry;
import org.apache.commons.compress.archivers.tar.TarArchiveOutputStream;
import org.apache.commons.compress.archivers.zip.Zip64Mode;
import org.apache.commons.compress.archivers.zip.ZipArchiveEntry;
import org.apache.commons.compress.archivers.zip.ZipArchiveOutputStream;

class Write {
    public static void main(String[] arguments) throws Exception {
        Path folder = Path.of(arguments[1]);
        Path archive = Path.of(arguments[2]);
        List<Path> paths;
        try (var walk = Files.walk(folder)) {
            paths = walk.filter(path -> !path.equals(folder)).sorted().collect(Collectors.toList());
        }
        switch (arguments[0]) {
            case "java-zip" -> javaZip(folder, paths, archive);
            case "zip" -> zip(folder, paths, new ZipArchiveOutputStream(archive.toFile()), Zip64Mode.AsNeeded);
            case "zip-cp437" -> {
                var zip = new ZipArchiveOutputStream(archive.toFile());
                zip.setEncoding("Cp437");
                zip(folder, paths, zip, Zip64Mode.AsNeeded);
            }
            case "zip-stream" -> zip(folder, paths, new ZipArchiveOutputStream(Files.newOutputStream(archive)), Zip64Mode.AsNeeded);
            case "zip64" -> zip(folder, paths, new ZipArchiveOutputStream(archive.toFile()), Zip64Mode.Always);
            case "tar-gnu" -> tar(folder, paths, archive, TarArchiveOutputStream.LONGFILE_GNU);
            case "tar-posix" -> tar(folder, paths, archive, TarArchiveOutputStream.LONGFILE_POSIX);
            default -> throw new IllegalArgumentException(arguments[0]);
        }
    }

    static String name(Path folder, Path path) {
        return folder.relativize(path) + (isFolder(path) ? "/" : "");
    }

    static boolean isFolder(Path path) {
        return Files.isDirectory(path, LinkOption.NOFOLLOW_LINKS);
    }

    static void javaZip(Path folder, List<Path> paths, Path archive) throws Exception {
        try (var zip = new ZipOutputStream(Files.newOutputStream(archive))) {
            for (Path path : paths) {
                zip.putNextEntry(new ZipEntry(name(folder, path)));
                if (!isFolder(path)) Files.copy(path, zip);
                zip.closeEntry();
            }
        }
    }

    static void zip(Path folder, List<Path> paths, ZipArchiveOutputStream zip, Zip64Mode mode) throws Exception {
        try (zip) {
            zip.setUseZip64(mode);
            zip.setCreateUnicodeExtraFields(ZipArchiveOutputStream.UnicodeExtraFieldPolicy.ALWAYS);
            for (Path path : paths) {
                var entry = new ZipArchiveEntry(name(folder, path));
                boolean link = Files.isSymbolicLink(path);
                entry.setUnixMode(link ? 0120777 : isFolder(path) ? 040755 : 0100644);
                zip.putArchiveEntry(entry);
                if (link) zip.write(Files.readSymbolicLink(path).toString().getBytes("UTF-8"));
                else if (!isFolder(path)) Files.copy(path, zip);
                zip.closeArchiveEntry();
            }
        }
    }

    static void tar(Path folder, List<Path> paths, Path archive, int longNames) throws Exception {
        try (OutputStream out = Files.newOutputStream(archive); var tar = new TarArchiveOutputStream(out, "UTF-8")) {
            tar.setLongFileMode(longNames);
            tar.setBigNumberMode(TarArchiveOutputStream.BIGNUMBER_POSIX);
            tar.setAddPaxHeadersForNonAsciiNames(longNames == TarArchiveOutputStream.LONGFILE_POSIX);
            for (Path path : paths) {
                TarArchiveEntry entry;
                if (Files.isSymbolicLink(path)) {
                    entry = new TarArchiveEntry(name(folder, path), TarArchiveEntry.LF_SYMLINK);
                    entry.setLinkName(Files.readSymbolicLink(path).toString());
                } else {
                    entry = new TarArchiveEntry(path, name(folder, path));
                }
                entry.setIds(0, 0);
                entry.setNames("root", "root");
                tar.putArchiveEntry(entry);
                if (entry.isFile() && !entry.isSymbolicLink()) Files.copy(path, tar);
                tar.closeArchiveEntry();
            }
        }
    }
}
