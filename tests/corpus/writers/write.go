// Packs a folder with Go's archive/tar or archive/zip: go run write.go KIND FOLDER > ARCHIVE
package main

import (
	"archive/tar"
	"archive/zip"
	"io"
	"os"
	"path/filepath"
	"time"
)

var formats = map[string]tar.Format{
	"tar": tar.FormatUnknown, "tar-pax": tar.FormatPAX, "tar-gnu": tar.FormatGNU, "tar-ustar": tar.FormatUSTAR,
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// walk calls visit for everything below the folder, in the order of the names.
func walk(folder string, visit func(name string, path string, info os.FileInfo)) {
	must(filepath.Walk(folder, func(path string, info os.FileInfo, err error) error {
		must(err)
		if path == folder {
			return nil
		}
		name, err := filepath.Rel(folder, path)
		must(err)
		if info.IsDir() {
			name += "/"
		}
		visit(name, path, info)
		return nil
	}))
}

func content(path string, info os.FileInfo) []byte {
	if info.Mode()&os.ModeSymlink != 0 {
		target, err := os.Readlink(path)
		must(err)
		return []byte(target)
	}
	if !info.Mode().IsRegular() {
		return nil
	}
	data, err := os.ReadFile(path)
	must(err)
	return data
}

func writeTar(kind string, folder string) {
	archive := tar.NewWriter(os.Stdout)
	walk(folder, func(name string, path string, info os.FileInfo) {
		data := content(path, info)
		header, err := tar.FileInfoHeader(info, string(data))
		must(err)
		header.Name, header.Format = name, formats[kind]
		if kind == "tar-ustar" {
			header.AccessTime, header.ChangeTime = time.Time{}, time.Time{} // for which the format has no room
		}
		must(archive.WriteHeader(header))
		if info.Mode().IsRegular() {
			_, err = archive.Write(data)
			must(err)
		}
	})
	must(archive.Close())
}

func writeZip(kind string, folder string) {
	archive := zip.NewWriter(os.Stdout)
	must(archive.SetComment("made by Go"))
	walk(folder, func(name string, path string, info os.FileInfo) {
		var file io.Writer
		var err error
		if kind == "zip-create" {
			file, err = archive.Create(name)
		} else {
			var header *zip.FileHeader
			header, err = zip.FileInfoHeader(info)
			must(err)
			header.Name = name
			if kind == "zip-deflate" {
				header.Method = zip.Deflate
			}
			file, err = archive.CreateHeader(header)
		}
		must(err)
		if !info.IsDir() {
			_, err = file.Write(content(path, info))
			must(err)
		}
	})
	must(archive.Close())
}

func main() {
	kind, folder := os.Args[1], os.Args[2]
	if _, found := formats[kind]; found {
		writeTar(kind, folder)
	} else {
		writeZip(kind, folder)
	}
}
