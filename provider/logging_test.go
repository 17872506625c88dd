package provider

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func TestProviderLogsWhatTerraformWouldShow(t *testing.T) {
	t.Parallel()
	const ofLibraries, ofOurs = `"Received request"`, `"request answered"`
	for name, c := range map[string]struct {
		environment []string
		wanted      []string
	}{
		"nothing asked for":        {nil, nil},
		"Terraform's own log":      {[]string{"TF_LOG_CORE=TRACE"}, nil},
		"everything":               {[]string{"TF_LOG=TRACE"}, []string{ofLibraries, ofOurs}},
		"everything, as JSON":      {[]string{"TF_LOG=JSON"}, []string{ofLibraries, ofOurs}},
		"what the provider does":   {[]string{"TF_LOG_PROVIDER=DEBUG"}, []string{ofOurs}},
		"what the libraries do":    {[]string{"TF_LOG_SDK=TRACE"}, []string{ofLibraries}},
		"all but of the libraries": {[]string{"TF_LOG=TRACE", "TF_LOG_SDK=ERROR"}, []string{ofOurs}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			logged := logOf(t, c.environment)
			for _, line := range []string{ofLibraries, ofOurs} {
				if wanted := slices.Contains(c.wanted, line); strings.Contains(logged, line) != wanted {
					t.Errorf(
						"%s in what the provider has logged: %v, and it should be %v:\n%.2000s",
						line,
						!wanted,
						wanted,
						logged,
					)
				}
			}
			if len(c.wanted) == 0 && strings.Contains(logged, `"@level":"trace"`) {
				t.Errorf("logged without a reader:\n%.2000s", logged)
			}
		})
	}
}

// logOf is what the provider has written to its standard error while terraform planned.
func logOf(t *testing.T, environment []string) string {
	t.Helper()
	f := startFake(t)
	f.webhooks["w1"] = &fakeWebhook{url: "https://example.com/a", eventTypes: []string{"*"}}
	w := newWorkspace(
		t,
		map[string]string{
			"main.tf": required + f.config(
				webhook("https://example.com/a", "")+"import {\n  to = "+hook+"\n  id = \"w1\"\n}\n",
			),
		},
	)
	programs, err := filepath.Glob(filepath.Join(mirrorDir, "*", "*", "*", "*", runtime.GOOS+"_"+runtime.GOARCH, "*"))
	if err != nil || len(programs) != 1 {
		t.Fatalf("%d built providers, %v", len(programs), err)
	}
	wrapped := t.TempDir()
	script := "#!/bin/sh\nexec '" + programs[0] + "' 2>>'" + filepath.Join(w.dir, "log") + "'\n"
	if err := os.WriteFile(
		filepath.Join(wrapped, "terraform-provider-deviceaccess"),
		[]byte(script),
		0o700,
	); err != nil {
		t.Fatal(err)
	}
	overrides := "provider_installation {\n  dev_overrides {\n    \"deviceaccess/deviceaccess\" = \"" + wrapped + "\"\n  }\n  direct {}\n}\n"
	w.write("terraformrc", overrides)
	cmd := exec.CommandContext(t.Context(), "terraform", "plan", "-no-color")
	cmd.Dir, cmd.Env = w.dir, append(
		withoutLogSettings(os.Environ()),
		append(environment, "TF_CLI_CONFIG_FILE="+filepath.Join(w.dir, "terraformrc"))...)
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("terraform plan: %v\n%s", err, said)
	}
	return w.file("log")
}

func withoutLogSettings(environment []string) (rest []string) {
	for _, variable := range environment {
		if !strings.HasPrefix(variable, "TF_LOG") {
			rest = append(rest, variable)
		}
	}
	return rest
}
