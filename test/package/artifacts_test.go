package packagetest

import (
	"debug/buildinfo"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// SHA256SUMS has all files of dist/, and the SBOMs have all modules of the programs.
func TestArtifacts(t *testing.T) {
	need(t, "sha256sum")
	dist := filepath.Join(repository, "dist")
	entries, err := os.ReadDir(dist)
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, e := range entries {
		if !e.IsDir() && e.Name() != "SHA256SUMS" {
			files = append(files, e.Name())
		}
	}
	var listed []string
	for line := range strings.Lines(run(t, "sh", "-c", "cd dist && sha256sum --strict --check SHA256SUMS")) {
		name, _, _ := strings.Cut(line, ":")
		listed = append(listed, name)
	}
	slices.Sort(listed)
	if !slices.Equal(files, listed) {
		t.Errorf("SHA256SUMS has %v, and dist/ has %v", listed, files)
	}
	for _, arch := range []string{"amd64", "arm64"} {
		checkSBOM(t, dist, arch)
	}
}

func checkSBOM(t *testing.T, dist, arch string) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dist, "*_linux_"+arch+".cdx.json"))
	if err != nil || len(found) != 1 {
		t.Fatalf("the SBOMs for %s are %v: %v", arch, found, err)
	}
	text, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	var sbom struct {
		BOMFormat  string
		Components []struct{ Name, Version string }
		Metadata   struct {
			Component struct{ Version string }
		}
	}
	if err := json.Unmarshal(text, &sbom); err != nil {
		t.Fatal(err)
	}
	var modules []string
	for _, c := range sbom.Components {
		modules = append(modules, c.Name+"@"+c.Version)
	}
	if want := "v" + version(found[0]); sbom.BOMFormat != "CycloneDX" || sbom.Metadata.Component.Version != want {
		t.Errorf("the SBOM is %q of version %q, not of %s", sbom.BOMFormat, sbom.Metadata.Component.Version, want)
	}
	info, err := buildinfo.ReadFile(filepath.Join(dist, "linux_"+arch, "deviceaccess-server"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		if !slices.Contains(modules, m.Path+"@"+m.Version) {
			t.Errorf("the SBOM for %s lacks %s %s", arch, m.Path, m.Version)
		}
	}
}
