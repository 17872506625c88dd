package console

import (
	"embed"
	"io/fs"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/web"
)

// console.css is compiled from tools/css/console.css by make generate.
//
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

// assetURL returns the URL of a file.
func assetURL(name string) string { return Path + "/assets/" + name + "?v=" + files.Version }
