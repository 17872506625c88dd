package zwavejs

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// An old server does not support named users, however often the lock is interviewed.
func TestNamedUsersNeedANewServer(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		lock   string
		schema int
		class  adapter.Class // empty: codes can be managed
		advice string
	}{
		"an old server": {
			namedLock, accessControlSchema - 1, adapter.NotSupported,
			"bring its zwave-js-server up to date",
		},
		"a new one":                        {namedLock, accessControlSchema, adapter.Transient, "interview it again"},
		"an old one, and users of no name": {plainLock, accessControlSchema - 1, "", ""},
	} {
		a, s := told(t)
		var log bytes.Buffer
		a.log, s.schema = slog.New(slog.NewTextHandler(&log, nil)), test.schema
		a.hear(s, `{"type":"result","success":true,"messageId":"1","result":{"state":{"nodes":[`+test.lock+`]}}}`)
		n := a.nodes[2]
		switch err := a.checkCodes(s, n); {
		case test.class == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case test.class != "" && (err == nil || adapter.ClassOf(err) != test.class ||
			!strings.Contains(err.Error(), test.advice)):
			t.Errorf("%s: %v, want %s and %q", name, err, test.class, test.advice)
		}
		if said := strings.Contains(log.String(), "level=WARN"); said != (test.class == adapter.NotSupported) {
			t.Errorf("%s: the log is %s", name, log.String())
		}
	}
}
