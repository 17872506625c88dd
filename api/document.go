package api

import _ "embed"

// OpenAPI is the contract as it is written, in YAML: each operation once, as a POST, with its further methods in
// `x-methods`. The server expands and serves it; this package only carries it, so that a client of the API links
// no OpenAPI library.
//
//go:embed openapi.yaml
var OpenAPI []byte
