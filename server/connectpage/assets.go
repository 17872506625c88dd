package connectpage

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"mime"
	"net/http"
	"path"
)

// htmx.min.js is dist/htmx.min.js of the npm package htmx.org, in the version that GNUmakefile pins.
//
//go:embed assets
var assets embed.FS

// assetsVersion changes with the embedded files, so that browsers can cache them.
var assetsVersion = func() string {
	h := sha256.New()
	for _, name := range []string{"page.css", "htmx.min.js", "icon.svg"} {
		b, err := assets.ReadFile("assets/" + name)
		if err != nil {
			panic(err) // cannot happen: the file is embedded
		}
		h.Write(b)
	}
	return hex.EncodeToString(h.Sum(nil)[:6])
}()

func asset(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("file")
	b, err := assets.ReadFile("assets/" + name)
	if err != nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", mime.TypeByExtension(path.Ext(name)))
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	_, _ = w.Write(b) // the client has disconnected
}
