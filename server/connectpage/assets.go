package connectpage

import (
	"embed"
	"io/fs"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/web"
)

//go:embed assets
var assets embed.FS

// files are the files that all pages share.
var files = func() *web.Files {
	own, err := fs.Sub(assets, "assets")
	if err != nil {
		panic(err) // cannot happen: the name is valid
	}
	return web.NewFiles(own)
}()
