// Package api is the client of the Device Access API: the generated models and operations, and a transport that
// retries, limits and logs requests. It must not depend on the provider or the server.
package api

import _ "embed"

// OpenAPI is the API contract in YAML. Each operation appears once, as a POST, with its other methods in `x-methods`.
// The server expands and serves it. Package api only embeds it, so that clients do not link an OpenAPI library.
//
//go:embed openapi.yaml
var OpenAPI []byte
