package web

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"path"
)

// assets are the files that the pages of several packages share. htmx.min.js is dist/htmx.min.js of the npm package
// htmx.org, in the version that GNUmakefile pins.
//
//go:embed assets
var assets embed.FS

// Files are embedded files that browsers may cache: their URLs contain Version.
type Files struct {
	// Version changes with the files.
	Version string

	content map[string][]byte
}

// NewFiles returns the shared files and those of the given directories. It panics if a directory cannot be read, which
// cannot happen with embedded ones.
func NewFiles(directories ...fs.FS) *Files {
	f := &Files{content: map[string][]byte{}}
	shared, err := fs.Sub(assets, "assets")
	if err != nil {
		panic(err)
	}
	hash := sha256.New()
	for _, directory := range append([]fs.FS{shared}, directories...) {
		err := fs.WalkDir(directory, ".", func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			content, err := fs.ReadFile(directory, name)
			if err != nil {
				return err
			}
			f.content[name] = content
			hash.Write(content)
			return nil
		})
		if err != nil {
			panic(err)
		}
	}
	f.Version = hex.EncodeToString(hash.Sum(nil)[:6])
	return f
}

// ServeHTTP serves the file with the name in the path value "file".
func (f *Files) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("file")
	content, found := f.content[name]
	if !found {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", mime.TypeByExtension(path.Ext(name)))
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	_, _ = w.Write(content) // the client has disconnected
}
