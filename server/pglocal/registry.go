package pglocal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"time"
)

// registry is an npm registry.
type registry struct {
	url  string // without trailing slash
	http *http.Client
}

const (
	responseTimeout = 30 * time.Second // until a registry's response starts

	// maxPackument bounds the description of a package, which lists all its versions.
	maxPackument = 32 << 20
)

// findRegistry returns the registry at address, else that of the environment, else that of an installed npm.
func findRegistry(ctx context.Context, address string) (*registry, error) {
	for _, name := range []string{"npm_config_registry", "NPM_CONFIG_REGISTRY"} {
		if address == "" {
			address = os.Getenv(name)
		}
	}
	if address == "" {
		address = askNPM(ctx)
	}
	if address == "" {
		return nil, errors.New("no package registry is known: set npm_config_registry or install npm")
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") {
		return nil, fmt.Errorf("the address of the package registry, %q, is not a http(s) URL", address)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.ResponseHeaderTimeout = responseTimeout
	return &registry{url: strings.TrimRight(address, "/"), http: &http.Client{Transport: transport}}, nil
}

// askNPM returns the registry that an installed npm uses, or "".
func askNPM(ctx context.Context) string {
	cmd := exec.CommandContext(ctx, "npm", "config", "get", "registry")
	cmd.Env = childEnv("HOME", "npm_config_userconfig", "npm_config_globalconfig", "NPM_CONFIG_USERCONFIG",
		"NPM_CONFIG_GLOBALCONFIG") // where npm finds its settings
	out, err := cmd.Output()
	address := strings.TrimSpace(string(out))
	if err != nil || address == "undefined" {
		return ""
	}
	return address
}

func (r *registry) close() { r.http.CloseIdleConnections() }

// archiveURL returns the URL of the archive of pkg.
func (r *registry) archiveURL(ctx context.Context, pkg npmPackage) (string, error) {
	resp, err := r.get(ctx, r.url+"/"+url.PathEscape(pkg.name), "application/vnd.npm.install-v1+json")
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	var packument struct {
		Versions map[string]struct {
			Dist struct{ Tarball string }
		}
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxPackument)).Decode(&packument); err != nil {
		return "", fmt.Errorf("read description of package %s: %w", pkg.name, err)
	}
	version, ok := packument.Versions[pkg.version]
	if !ok || version.Dist.Tarball == "" {
		return "", fmt.Errorf("the registry has no version %s of package %s", pkg.version, pkg.name)
	}
	return version.Dist.Tarball, nil
}

// get returns a response with status 200; the caller closes its body.
func (r *registry) get(ctx context.Context, address, accept string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fmt.Errorf("ask package registry: %w", err)
	}
	req.Header.Set("Accept", accept)
	resp, err := r.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("ask package registry: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		_ = resp.Body.Close()
		return nil, fmt.Errorf("ask package registry: GET %s: %s", address, resp.Status)
	}
	return resp, nil
}
