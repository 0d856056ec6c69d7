"""How each archive of the corpus is made, and what must come out of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tests.corpus.trees import FOLLOWED, PAGES, SITE, SOURCES, STANDARD_INPUT, Source, unpacked
from tests.folders import Tree

VERSIONS: Final[Mapping[str, str]] = {
    "GNU tar": "tar --version",
    "bsdtar": "bsdtar --version",
    "BusyBox": "busybox",
    "Toybox": "toybox --version",
    "MirBSD pax": "dpkg-query --show pax",
    "pigz": "pigz --version",
    "pbzip2": "pbzip2 --version 2>&1",
    "XZ Utils": "xz --version",
    "Info-ZIP": "zip --version | sed -n 2p",
    "7-Zip": "7z | sed -n 2p",
    "MiniZip": "dpkg-query --show minizip",
    "libzip": "dpkg-query --show ziptool",
    "jar": "jar --version",
    "Java": "java --version",
    "Commons Compress": "dpkg-query --show libcommons-compress-java",
    "Go": "go version",
    "Python": "python3 --version",
    "git": "git --version",
    "Archive::Tar": "perl -MArchive::Tar -e 'print qq(Archive::Tar $Archive::Tar::VERSION)'",
    "Archive::Zip": "perl -MArchive::Zip -e 'print qq(Archive::Zip $Archive::Zip::VERSION)'",
    "RubyGems": "gem --version | sed 's/^/RubyGems /'",
    "rubyzip": "gem list --quiet rubyzip",
    **{
        f"npm {package}": f"""sed -n 's/^ *"version": "\\(.*\\)",$/npm {package} \\1/p' "$NODE_PATH/{package}/package.json" """
        for package in ("tar", "tar-stream", "archiver", "jszip", "yazl", "fflate", "adm-zip")
    },
}
"""The writers, each with a shell command whose first line of output tells its version."""


@dataclass(frozen=True)
class Recipe:
    """One archive.

    `command` runs in bash, in a folder that holds the tree `source`, and writes the archive to `$OUT`; `*` matches hidden names
    too. `comes_out` is the tree that must come out, where it differs from the source; `refused` is the kind of the refusal in
    `tests/archives.py`.
    """

    writer: str
    command: str
    source: str = "site"
    comes_out: Source | None = None
    refused: str | None = None

    def tree(self) -> Tree:
        """Return the tree that must come out."""
        return unpacked(SOURCES[self.source] if self.comes_out is None else self.comes_out)


def _without_folders(source: Source) -> Source:
    return {path: node for path, node in source.items() if node is not None}


_TAR: Final = "tar --sort=name --owner=root:0 --group=root:0"
_BSDTAR: Final = "bsdtar --uid 0 --gid 0 --uname root --gname root"
_TOYBOX: Final = "toybox tar --owner root:0 --group root:0"
_7Z_TAR: Final = "7z a -bd -ttar -snl -snh"
_7Z_ZIP: Final = "7z a -bd -tzip -snl"
_GIT: Final = (
    "export GIT_AUTHOR_DATE=@1704067200Z GIT_COMMITTER_DATE=@1704067200Z; git init --quiet; git add --all; "
    "git -c user.name=Docs -c user.email=docs@example.com commit --quiet --message=Site; git archive"
)
_GO: Final = "GO111MODULE=off go run $WRITERS/write.go"
_NODE: Final = "node $WRITERS/write.cjs"
_JAVA: Final = "java -Dfile.encoding=UTF-8 -cp /usr/share/java/commons-compress.jar $WRITERS/Write.java"
_PERL_TAR: Final = (
    "find * | LC_ALL=C sort | perl -MArchive::Tar -ne 'chomp; push @names, $_; "
    "END { Archive::Tar->create_archive($ENV{OUT}, COMPRESS_GZIP, @names) or die }'"
)
_PERL_ZIP: Final = (
    "perl -MArchive::Zip -e '$zip = Archive::Zip->new; $zip->addTree(q(.), q()); $zip->writeToFileNamed($ENV{OUT}) == 0 or die'"
)

_ATTRIBUTES: Final = (
    "setfattr -n user.comment -v 'two\nlines = 1' index.html; setfattr -n user.binary -v 0x000a3d00ff0a31 404.html; "
    "setfacl -m u:1234:r,g:2345:rw index.html; setfacl -m d:u:1234:rwx guide"
)
_HALVES: Final = f"{_TAR} -cf all.tar index.html search.json; head -c 10000 all.tar > a; tail -c +10001 all.tar > b"
_LARGE_NUMBERS: Final = "tar --sort=name --owner=docs:3000000000 --group=docs:3000000000 --mtime=@-1000000000.5"

_GNU_TAR: Final = {
    **{
        f"gnu-tar-{form}.tar.gz": Recipe("GNU tar", f"{_TAR} --format={form} -czf $OUT *")
        for form in ("gnu", "oldgnu", "pax", "ustar", "v7")
    },
    **{
        f"gnu-tar-{form}-{source}.tar.gz": Recipe("GNU tar", f"{_TAR} --format={form} -czf $OUT *", source)
        for form in ("gnu", "pax")
        for source in ("long-names", "hard-links", "linked-links")
    },
    "gnu-tar-oldgnu-long-names.tar.gz": Recipe("GNU tar", f"{_TAR} --format=oldgnu -czf $OUT *", "long-names"),
    "gnu-tar-ustar-names.tar.gz": Recipe("GNU tar", f"{_TAR} --format=ustar -czf $OUT *", "ustar-names"),
    "gnu-tar-dot.tar": Recipe("GNU tar", f"{_TAR} -cf $OUT ."),
    "gnu-tar-dot-linked-links.tar.gz": Recipe("GNU tar", f"{_TAR} -czf $OUT .", "linked-links"),
    "gnu-tar.tar.bz2": Recipe("GNU tar", f"{_TAR} -cjf $OUT *"),
    "gnu-tar.tar.xz": Recipe("GNU tar", f"{_TAR} -cJf $OUT *"),
    "gnu-tar.tar.zst": Recipe("GNU tar", f"{_TAR} --zstd -cf $OUT *", refused="not an archive"),
    "gnu-tar-dereference.tar.gz": Recipe("GNU tar", f"{_TAR} -h -czf $OUT *", comes_out=FOLLOWED),
    "gnu-tar-hard-dereference.tar.gz": Recipe("GNU tar", f"{_TAR} --hard-dereference -czf $OUT *", "hard-links"),
    "gnu-tar-list-of-files.tar.gz": Recipe(
        "GNU tar",
        f"find * ! -type d | LC_ALL=C sort | {_TAR} -czf $OUT --no-recursion -T -",
        comes_out=_without_folders(SITE),
    ),
    "gnu-tar-pax-attributes.tar.gz": Recipe(
        "GNU tar", f"{_ATTRIBUTES}; {_TAR} --format=pax --xattrs --acls --selinux -czf $OUT *"
    ),
    "gnu-tar-pax-options.tar.gz": Recipe(
        "GNU tar",
        f"{_TAR} --format=pax --pax-option='exthdr.name=%d/PaxHeaders/%f,comment=Docs = 1,delete=atime' -czf $OUT *",
    ),
    "gnu-tar-gnu-label.tar.gz": Recipe("GNU tar", f"{_TAR} --format=gnu --label='Docs of 2024' -czf $OUT *"),
    "gnu-tar-pax-label.tar.gz": Recipe("GNU tar", f"{_TAR} --format=pax --label='Docs of 2024' -czf $OUT *"),
    "gnu-tar-gnu-large-numbers.tar.gz": Recipe("GNU tar", f"{_LARGE_NUMBERS} --format=gnu -czf $OUT *"),
    "gnu-tar-pax-large-numbers.tar.gz": Recipe("GNU tar", f"{_LARGE_NUMBERS} --format=pax -czf $OUT *"),
    "gnu-tar-one-block-records.tar": Recipe("GNU tar", f"{_TAR} --blocking-factor=1 -cf $OUT *"),
    "gnu-tar-large-records.tar.gz": Recipe("GNU tar", f"{_TAR} --blocking-factor=2048 -czf $OUT *"),
    "gnu-tar-appended.tar.gz": Recipe(
        "GNU tar", f"{_TAR} -cf a.tar [a-z]*; {_TAR} -rf a.tar [.0-9]* übersicht; gzip < a.tar > $OUT", comes_out=SITE
    ),
    "gnu-tar-concatenated.tar.gz": Recipe(
        "GNU tar",
        f"{_TAR} -cf a.tar assets empty guide; {_TAR} -cf b.tar [i-l]* [.0-9]* übersicht; "
        "tar -Af a.tar b.tar; gzip < a.tar > $OUT",
    ),
    "gnu-tar-end-to-end.tar.gz": Recipe(
        "GNU tar", f"{_TAR} -c [a-h]* > a; {_TAR} -c [i-l]* > b; cat a b | gzip > $OUT", refused="damaged"
    ),
    "gnu-tar-updated.tar.gz": Recipe(
        "GNU tar",
        f"{_TAR} -cf a.tar *.html; touch *.html; {_TAR} -uf a.tar *.html; gzip < a.tar > $OUT",
        comes_out={name: SITE[name] for name in ("404.html", "index.html")},
    ),
    "gnu-tar-incremental.tar.gz": Recipe("GNU tar", f"{_TAR} --listed-incremental=$OUT.snar -czf $OUT *", refused="unsafe"),
    "gnu-tar-named-pipe.tar.gz": Recipe("GNU tar", f"mkfifo pipe; {_TAR} -czf $OUT *", refused="unsafe"),
    "gnu-tar-absolute.tar.gz": Recipe(
        "GNU tar", f"{_TAR} -czf $OUT --absolute-names --transform='s,^,/srv/docs/,' *", refused="unsafe"
    ),
    "gnu-tar-sparse-option.tar.gz": Recipe("GNU tar", f"{_TAR} --sparse -czf $OUT *"),
    "gnu-tar-sparse-input.tar.gz": Recipe("GNU tar", f"{_TAR} -czf $OUT *", "sparse"),
    "gnu-tar-gnu-sparse.tar.gz": Recipe("GNU tar", f"{_TAR} --format=gnu --sparse -czf $OUT *", "sparse"),
    **{
        f"gnu-tar-pax-sparse-{version}.tar.gz": Recipe(
            "GNU tar", f"{_TAR} --format=pax --sparse-version={version} -czf $OUT *", "sparse"
        )
        for version in ("0.0", "0.1", "1.0")
    },
}

_COMPRESSED: Final = {
    "gzip-two-members.tar.gz": Recipe("GNU tar", f"{_HALVES}; gzip a b; cat a.gz b.gz > $OUT", "large"),
    "gzip-padded.tar.gz": Recipe("GNU tar", f"{_TAR} -cz * > $OUT; head -c 1000 /dev/zero >> $OUT"),
    "gzip-name-in-header.tar.gz": Recipe(
        "GNU tar", f"{_TAR} -cf docs.tar *; gzip --name --rsyncable docs.tar; mv docs.tar.gz $OUT"
    ),
    "gzip-around-tar-gz.gz": Recipe("GNU tar", f"{_TAR} -cz * | gzip > $OUT", refused="not an archive"),
    "gzip-around-zip.gz": Recipe("Info-ZIP", "zip -qry site.zip *; gzip < site.zip > $OUT", refused="not an archive"),
    "gzip-around-zip-pipe.gz": Recipe("Info-ZIP", "zip -qr - * | gzip > $OUT", "pages", refused="not an archive"),
    "pigz.tar.gz": Recipe("pigz", f"{_TAR} -c * | pigz --processes 2 --blocksize 128 --independent > $OUT", "large"),
    "pigz-zlib.tar.zz": Recipe("pigz", f"{_TAR} -c * | pigz --zlib > $OUT", refused="not an archive"),
    "pigz.zip": Recipe(
        "pigz",
        "pigz --zip < index.html > $OUT",
        comes_out=STANDARD_INPUT,
    ),
    "bzip2-two-streams.tar.bz2": Recipe("GNU tar", f"{_HALVES}; bzip2 a b; cat a.bz2 b.bz2 > $OUT", "large"),
    "pbzip2.tar.bz2": Recipe("pbzip2", f"{_TAR} -c * | pbzip2 -b1 -p2 -c > $OUT", "large"),
    "xz-threads.tar.xz": Recipe("XZ Utils", f"{_TAR} -c * | xz --threads=2 --block-size=64KiB > $OUT", "large"),
    "xz-two-streams.tar.xz": Recipe("XZ Utils", f"{_HALVES}; xz a b; cat a.xz b.xz <(head -c 8 /dev/zero) > $OUT", "large"),
    "xz-extreme.tar.xz": Recipe("XZ Utils", f"{_TAR} -c * | xz -9e --check=sha256 > $OUT"),
    "xz-filters.tar.xz": Recipe("XZ Utils", f"{_TAR} -c * | xz --check=none --x86 --lzma2 > $OUT"),
    "xz-large-dictionary.tar.xz": Recipe("XZ Utils", f"{_TAR} -c * | xz --lzma2=dict=256MiB > $OUT", refused="unsafe"),
    "lzma.tar.lzma": Recipe("XZ Utils", f"{_TAR} -c * | xz --format=lzma > $OUT", refused="not an archive"),
}

_BSDTAR_RECIPES: Final = {
    **{
        f"bsdtar-{form}.tar.gz": Recipe("bsdtar", f"{_BSDTAR} --format {form} -czf $OUT *")
        for form in ("gnutar", "pax", "ustar", "v7tar")
    },
    "bsdtar-restricted-pax.tar.gz": Recipe("bsdtar", f"{_BSDTAR} --format paxr -czf $OUT *"),
    "bsdtar-dot.tar": Recipe("bsdtar", f"{_BSDTAR} -cf $OUT ."),
    "bsdtar-gnutar-long-names.tar.gz": Recipe("bsdtar", f"{_BSDTAR} --format gnutar -czf $OUT *", "long-names"),
    "bsdtar-pax-long-names.tar.gz": Recipe("bsdtar", f"{_BSDTAR} --format pax -czf $OUT *", "long-names"),
    "bsdtar-ustar-names.tar.gz": Recipe("bsdtar", f"{_BSDTAR} --format ustar -czf $OUT *", "ustar-names"),
    "bsdtar-hard-links.tar.gz": Recipe("bsdtar", f"{_BSDTAR} -czf $OUT *", "hard-links"),
    "bsdtar-gnutar-hard-links.tar.gz": Recipe("bsdtar", f"{_BSDTAR} --format gnutar -czf $OUT *", "hard-links"),
    "bsdtar-linked-links.tar.gz": Recipe("bsdtar", f"{_BSDTAR} -czf $OUT *", "linked-links"),
    "bsdtar-attributes.tar.gz": Recipe("bsdtar", f"{_ATTRIBUTES}; {_BSDTAR} --format pax --xattrs --acls --fflags -czf $OUT *"),
    "bsdtar.tar.bz2": Recipe("bsdtar", f"{_BSDTAR} -cjf $OUT *"),
    "bsdtar.tar.xz": Recipe("bsdtar", f"{_BSDTAR} -cJf $OUT *"),
    "bsdtar-no-read-sparse.tar.gz": Recipe("bsdtar", f"{_BSDTAR} --no-read-sparse -czf $OUT *", "sparse"),
    "bsdtar-sparse.tar.gz": Recipe("bsdtar", f"{_BSDTAR} -czf $OUT *", "sparse"),
    "bsdtar.zip": Recipe("bsdtar", f"{_BSDTAR} --format zip -cf $OUT *"),
    "bsdtar-pipe.zip": Recipe("bsdtar", f"{_BSDTAR} --format zip -cf - * | cat > $OUT"),
    "bsdtar-dot.zip": Recipe("bsdtar", f"{_BSDTAR} --format zip -cf $OUT ."),
    "bsdtar-store.zip": Recipe("bsdtar", f"{_BSDTAR} --format zip --options zip:compression=store -cf $OUT *"),
    "bsdtar-zip64.zip": Recipe("bsdtar", f"{_BSDTAR} --format zip --options zip:zip64 -cf - * > $OUT"),
    "bsdtar-hard-links.zip": Recipe("bsdtar", f"{_BSDTAR} --format zip -cf $OUT *", "hard-links"),
    "bsdtar-encrypted.zip": Recipe(
        "bsdtar",
        f"{_BSDTAR} --format zip --options zip:encryption=zipcrypt --passphrase secret -cf $OUT *",
        refused="unsafe",
    ),
    "bsdtar.cpio": Recipe("bsdtar", f"{_BSDTAR} --format cpio -cf $OUT *", refused="not an archive"),
}

_OTHER_TAR: Final = {
    "busybox.tar": Recipe("BusyBox", "busybox tar -cf $OUT *"),
    "busybox-dot.tar.gz": Recipe("BusyBox", "busybox tar -czf $OUT ."),
    **{
        f"busybox-{source}.tar.gz": Recipe("BusyBox", "busybox tar -czf $OUT *", source)
        for source in ("long-names", "hard-links", "linked-links")
    },
    "toybox.tar": Recipe("Toybox", f"{_TOYBOX} -cf $OUT *"),
    **{
        # With -z it may end before gzip has written the archive.
        f"toybox-{source}.tar.gz": Recipe("Toybox", f"{_TOYBOX} -c * | gzip -n > $OUT", source)
        for source in ("long-names", "hard-links", "linked-links")
    },
    "pax-ustar.tar": Recipe("MirBSD pax", "pax -w -x ustar * > $OUT"),
    "pax-ustar-names.tar.gz": Recipe("MirBSD pax", "pax -w -x ustar * | gzip -n > $OUT", "ustar-names"),
    "7-zip.tar": Recipe("7-Zip", f"{_7Z_TAR} $OUT * > /dev/null"),
    "7-zip-pax.tar.gz": Recipe("7-Zip", f"{_7Z_TAR} -mm=pax site.tar * > /dev/null; gzip < site.tar > $OUT"),
    "7-zip-pipe.tar.gz": Recipe("7-Zip", "7z a -bd -ttar -snl -so -an * | 7z a -bd -tgzip -sisite.tar $OUT > /dev/null"),
    "7-zip-long-names.tar.gz": Recipe("7-Zip", f"{_7Z_TAR} site.tar * > /dev/null; gzip < site.tar > $OUT", "long-names"),
    "7-zip-hard-links.tar.gz": Recipe("7-Zip", f"{_7Z_TAR} site.tar * > /dev/null; gzip < site.tar > $OUT", "hard-links"),
    "7-zip.tar.bz2": Recipe("7-Zip", f"{_TAR} -c * | 7z a -bd -tbzip2 -mmt=2 -sisite.tar $OUT > /dev/null", "large"),
    "7-zip.tar.xz": Recipe("7-Zip", f"{_TAR} -c * | 7z a -bd -txz -mmt=2 -ms=64k -sisite.tar $OUT > /dev/null", "large"),
    "7-zip.7z": Recipe("7-Zip", "7z a -bd $OUT * > /dev/null", refused="not an archive"),
    "git.tar.gz": Recipe("git", f"{_GIT} --format=tar.gz --output=$OUT HEAD", comes_out=_without_folders(SITE)),
    "git-prefix.tar.gz": Recipe(
        "git",
        f"{_GIT} --format=tar.gz --prefix=docs-1.0/ --output=$OUT HEAD",
        comes_out={f"docs-1.0/{path}": node for path, node in _without_folders(SITE).items()},
    ),
    "git-long-names.tar.gz": Recipe(
        "git",
        f"{_GIT} --format=tar.gz --output=$OUT HEAD",
        "long-names",
        comes_out=_without_folders(SOURCES["long-names"]),
    ),
    "perl.tar.gz": Recipe("Archive::Tar", _PERL_TAR),
    # Archive::Tar cuts a link's target off after 100 bytes.
    "perl-long-names.tar.gz": Recipe("Archive::Tar", _PERL_TAR, "long-names", refused="unsafe"),
    "rubygems.tar": Recipe("RubyGems", "ruby $WRITERS/write.rb tar . $OUT"),
}

_LIBRARIES_TAR: Final = {
    **{
        f"python-{form}.tar.gz": Recipe("Python", f"python3 $WRITERS/write.py tar-{form} . > $OUT")
        for form in ("gnu", "pax", "ustar")
    },
    **{
        f"python-{form}-{source}.tar.gz": Recipe("Python", f"python3 $WRITERS/write.py tar-{form} . > $OUT", source)
        for form in ("gnu", "pax")
        for source in ("long-names", "hard-links")
    },
    **{
        f"python-shutil.{suffix}": Recipe(
            "Python", f"""python3 -c 'import shutil; shutil.make_archive("'${{OUT%.{suffix}}}'", "{form}")'"""
        )
        for suffix, form in {"tar": "tar", "tar.gz": "gztar", "tar.bz2": "bztar", "tar.xz": "xztar"}.items()
    },
    **{
        f"go-{form}.tar.gz": Recipe("Go", f"{_GO} tar-{form} . | gzip -n > $OUT", source)
        for form, source in {"gnu": "site", "pax": "site", "ustar": "ustar-names"}.items()
    },
    **{
        f"go-{form}-long-names.tar.gz": Recipe("Go", f"{_GO} tar-{form} . | gzip -n > $OUT", "long-names")
        for form in ("gnu", "pax")
    },
    "go.tar": Recipe("Go", f"{_GO} tar . > $OUT"),
    "node-tar.tar.gz": Recipe("npm tar", f"{_NODE} tar . > $OUT"),
    "node-tar-portable.tar.gz": Recipe(
        "npm tar",
        f"{_NODE} tar-portable . > $OUT",
        comes_out={f"package/{path}": node for path, node in SITE.items()},
    ),
    "node-tar-long-names.tar.gz": Recipe("npm tar", f"{_NODE} tar . > $OUT", "long-names"),
    "node-tar-hard-links.tar.gz": Recipe("npm tar", f"{_NODE} tar . > $OUT", "hard-links"),
    "node-tar-linked-links.tar.gz": Recipe("npm tar", f"{_NODE} tar . > $OUT", "linked-links"),
    "node-tar-stream.tar.gz": Recipe("npm tar-stream", f"{_NODE} tar-stream . | gzip -n > $OUT"),
    "node-tar-stream-long-names.tar.gz": Recipe("npm tar-stream", f"{_NODE} tar-stream . | gzip -n > $OUT", "long-names"),
    "node-archiver.tar.gz": Recipe("npm archiver", f"{_NODE} archiver-tar . > $OUT", "pages"),
    **{
        f"commons-compress-{form}.tar.gz": Recipe(
            "Commons Compress", f"{_JAVA} tar-{form} . /dev/stdout | gzip -n > $OUT", "long-names"
        )
        for form in ("gnu", "posix")
    },
    "commons-compress.tar.gz": Recipe("Commons Compress", f"{_JAVA} tar-posix . /dev/stdout | gzip -n > $OUT"),
}

_ZIP: Final = {
    "info-zip.zip": Recipe("Info-ZIP", "zip -qr $OUT *", comes_out=FOLLOWED),
    "info-zip-dot.zip": Recipe("Info-ZIP", "zip -qry $OUT ."),
    "info-zip-symlinks.zip": Recipe("Info-ZIP", "zip -qry $OUT *"),
    "info-zip-store.zip": Recipe("Info-ZIP", "zip -qry0 $OUT *"),
    "info-zip-best.zip": Recipe("Info-ZIP", "zip -qry9 $OUT *"),
    "info-zip-bzip2.zip": Recipe("Info-ZIP", "zip -qry -Z bzip2 $OUT *", "large", refused="unsafe"),
    "info-zip-no-extra.zip": Recipe("Info-ZIP", "zip -qryX $OUT *"),
    "info-zip-no-folders.zip": Recipe("Info-ZIP", "zip -qryD $OUT *", comes_out=_without_folders(SITE)),
    "info-zip-pipe.zip": Recipe("Info-ZIP", "zip -qr - * | cat > $OUT", "pages"),
    # Damaged by a fault of zip 3.0: unzip, 7-Zip and Python's zipfile refuse it too.
    "info-zip-pipe-zip64.zip": Recipe("Info-ZIP", "zip -qr -fz - * | cat > $OUT", "pages", refused="damaged"),
    "info-zip-zip64.zip": Recipe("Info-ZIP", "zip -qry -fz $OUT *"),
    "info-zip-descriptors.zip": Recipe("Info-ZIP", "zip -qry -fd $OUT *", "large"),
    "info-zip-standard-input.zip": Recipe("Info-ZIP", "zip -q - - < index.html | cat > $OUT", comes_out=STANDARD_INPUT),
    "info-zip-from-pipe.zip": Recipe("Info-ZIP", "cat index.html | zip -q - - > $OUT", refused="unsafe"),
    "info-zip-comment.zip": Recipe(
        "Info-ZIP", "zip -qry $OUT *; printf 'Docs of 2024\\n\\n© Example\\n' | zip -z $OUT > /dev/null"
    ),
    "info-zip-long-names.zip": Recipe("Info-ZIP", "zip -qry $OUT *", "long-names"),
    "info-zip-locale-c.zip": Recipe("Info-ZIP", "LC_ALL=C zip -qry $OUT *"),
    "info-zip-rewritten.zip": Recipe(
        "Info-ZIP",
        "touch old.html; zip -qry $OUT *; rm old.html; touch 404.html; zip -qry $OUT -FS *; "
        "zip -q -d $OUT logo.png; zip -q $OUT logo.png",
    ),
    "info-zip-self-extracting.zip": Recipe(
        "Info-ZIP",
        "printf '#!/bin/sh\\nexit\\n' > stub; zip -qry a.zip *.html; cat stub a.zip > $OUT; zip -qA $OUT",
        refused="not an archive",
    ),
    "info-zip-encrypted.zip": Recipe("Info-ZIP", "zip -qry -P secret $OUT *", refused="unsafe"),
    "7-zip.zip": Recipe("7-Zip", f"{_7Z_ZIP} $OUT * > /dev/null"),
    "7-zip-store.zip": Recipe("7-Zip", f"{_7Z_ZIP} -mx0 $OUT * > /dev/null"),
    "7-zip-best.zip": Recipe("7-Zip", f"{_7Z_ZIP} -mx9 $OUT * > /dev/null", "large"),
    "7-zip-utf8.zip": Recipe("7-Zip", f"{_7Z_ZIP} -mcu=on $OUT * > /dev/null"),
    "7-zip-local-names.zip": Recipe("7-Zip", f"{_7Z_ZIP} -mcl=on $OUT * > /dev/null"),
    "7-zip-standard-input.zip": Recipe(
        "7-Zip", "7z a -bd -tzip -siindex.html $OUT < index.html > /dev/null", comes_out={"index.html": SITE["index.html"]}
    ),
    "7-zip-from-pipe.zip": Recipe(
        "7-Zip",
        "cat index.html | 7z a -bd -tzip -siindex.html $OUT > /dev/null",
        refused="unsafe",
    ),
    "7-zip-long-names.zip": Recipe("7-Zip", f"{_7Z_ZIP} $OUT * > /dev/null", "long-names"),
    "7-zip-hard-links.zip": Recipe("7-Zip", f"{_7Z_ZIP} -snh $OUT * > /dev/null", "hard-links"),
    **{
        f"7-zip-{method.lower()}.zip": Recipe(
            "7-Zip", f"7z a -bd -tzip -mm={method} $OUT index.html search.json > /dev/null", "large", refused="unsafe"
        )
        for method in ("BZip2", "LZMA", "Deflate64", "PPMd")
    },
    "7-zip-encrypted.zip": Recipe("7-Zip", f"{_7Z_ZIP} -psecret -mem=AES256 $OUT * > /dev/null", refused="unsafe"),
    "jar.jar": Recipe(
        "jar",
        "jar --create --file $OUT *",
        "pages",
        # A newer JDK writes its own version here.
        comes_out={**PAGES, "META-INF/MANIFEST.MF": b"Manifest-Version: 1.0\r\nCreated-By: 17.0.15 (Debian)\r\n\r\n"},
    ),
    "jar-no-manifest.jar": Recipe("jar", "jar --create --no-manifest --file $OUT *", "pages"),
    "jar-store.jar": Recipe("jar", "jar --create --no-manifest --no-compress --file $OUT *", "pages"),
    "jar-pipe.jar": Recipe("jar", "jar --create --no-manifest * > $OUT", "pages"),
    "java.zip": Recipe("Java", f"{_JAVA} java-zip . $OUT", "pages"),
    "commons-compress.zip": Recipe("Commons Compress", f"{_JAVA} zip . $OUT"),
    "commons-compress-stream.zip": Recipe("Commons Compress", f"{_JAVA} zip-stream . $OUT"),
    "commons-compress-zip64.zip": Recipe("Commons Compress", f"{_JAVA} zip64 . $OUT"),
    # What the encoding cannot hold is in the Unicode field.
    "commons-compress-cp437.zip": Recipe("Commons Compress", f"{_JAVA} zip-cp437 . $OUT"),
    "go-create.zip": Recipe("Go", f"{_GO} zip-create . > $OUT", "pages"),
    "go-deflate.zip": Recipe("Go", f"{_GO} zip-deflate . > $OUT"),
    "go-store.zip": Recipe("Go", f"{_GO} zip-store . > $OUT"),
    "node-archiver.zip": Recipe("npm archiver", f"{_NODE} archiver-zip . > $OUT", "pages"),
    "node-archiver-zip64.zip": Recipe("npm archiver", f"{_NODE} archiver-zip64 . > $OUT", "pages"),
    "node-jszip.zip": Recipe("npm jszip", f"{_NODE} jszip . > $OUT", "pages"),
    "node-jszip-stream.zip": Recipe("npm jszip", f"{_NODE} jszip-stream . > $OUT", "pages"),
    "node-jszip-unix.zip": Recipe("npm jszip", f"{_NODE} jszip-unix . > $OUT"),
    "node-yazl.zip": Recipe("npm yazl", f"{_NODE} yazl . > $OUT", "pages"),
    "node-yazl-zip64.zip": Recipe("npm yazl", f"{_NODE} yazl-zip64 . > $OUT", "pages"),
    "node-fflate.zip": Recipe("npm fflate", f"{_NODE} fflate . > $OUT", "pages", comes_out=_without_folders(PAGES)),
    "node-adm-zip.zip": Recipe("npm adm-zip", f"{_NODE} adm-zip . > $OUT", "pages"),
    "python-shutil.zip": Recipe("Python", """python3 -c 'import shutil; shutil.make_archive("'${OUT%.zip}'", "zip")'""", "pages"),
    "python-command.zip": Recipe("Python", "python3 -m zipfile -c $OUT *", "pages"),
    **{
        f"python-{option}.zip": Recipe("Python", f"python3 $WRITERS/write.py zip-{option} . > $OUT")
        for option in ("deflate", "store")
    },
    "python-stream.zip": Recipe("Python", "python3 $WRITERS/write.py zip-stream . | cat > $OUT"),
    **{
        f"python-{option}.zip": Recipe("Python", f"python3 $WRITERS/write.py zip-{option} . > $OUT", refused="unsafe")
        for option in ("bzip2", "lzma")
    },
    "git.zip": Recipe("git", f"{_GIT} --format=zip --output=$OUT HEAD", comes_out=_without_folders(SITE)),
    "git-store.zip": Recipe(
        "git",
        f"{_GIT} --format=zip -0 --prefix=docs-1.0/ --output=$OUT HEAD",
        comes_out={f"docs-1.0/{path}": node for path, node in _without_folders(SITE).items()},
    ),
    "perl.zip": Recipe("Archive::Zip", _PERL_ZIP, "pages"),
    "rubyzip.zip": Recipe("rubyzip", "ruby $WRITERS/write.rb zip . $OUT"),
    "minizip.zip": Recipe(
        "MiniZip",
        "find * -type f | sort | xargs -d '\\n' minizip -9 $OUT > /dev/null",
        "pages",
        comes_out=_without_folders(PAGES),
    ),
    "libzip.zip": Recipe(
        "libzip",
        "ziptool $OUT add_file 404.html 404.html 0 0 add_file index.html index.html 0 0",
        comes_out={name: PAGES[name] for name in ("404.html", "index.html")},
    ),
}

_CONTRADICT: Final = "python3 $WRITERS/contradict.py"
_PAGE: Final = b"<h1>Docs</h1>\n"
_TWO_PAGES: Final = {"index.html": _PAGE, "guide.html": _PAGE}
_CONTRADICTORY: Final = {
    **{
        f"{name}.zip": Recipe("Python", f"{_CONTRADICT} zip-{kind} > $OUT", comes_out={page: _PAGE})
        for name, kind, page in (
            ("unicode-name", "unicode", "日.html"),
            ("unicode-name-outdated", "unicode-outdated", "%U65E5.html"),
            ("unicode-name-flag", "unicode-flag", "page.html"),
            *((f"local-{field}", field, "index.html") for field in ("flags", "method", "checksum", "size")),
        )
    },
    "unlisted-entry.zip": Recipe("Python", f"{_CONTRADICT} zip-unlisted > $OUT", comes_out=_TWO_PAGES),
    **{
        f"{kind}.tar.gz": Recipe("Python", f"{_CONTRADICT} tar-{kind} | gzip -n > $OUT", comes_out={page: _PAGE})
        for kind, page in {"two-headers": "a.html", "solaris-header": "a.html", "realsize": "index.html"}.items()
    },
    "many-records.tar.xz": Recipe("Python", f"{_CONTRADICT} tar-many-records | xz > $OUT", refused="unsafe"),
}
"""Archives that say two things about an entry, which come out as Python reads them, or describe it at too much length."""

RECIPES: Final[Mapping[str, Recipe]] = {
    **_GNU_TAR,
    **_COMPRESSED,
    **_BSDTAR_RECIPES,
    **_OTHER_TAR,
    **_LIBRARIES_TAR,
    **_ZIP,
    **_CONTRADICTORY,
}
"""Every archive of the corpus, by its file name."""
