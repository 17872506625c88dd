package webhook_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The instructions of the guide for receivers, word for word.
func verify(secret string, header http.Header, body []byte) error {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		return err
	}
	sent, err := strconv.ParseInt(header.Get("webhook-timestamp"), 10, 64)
	if err != nil || time.Since(time.Unix(sent, 0)).Abs() > 5*time.Minute {
		return errors.New("the timestamp is missing, too old or too new")
	}
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%d.%s", header.Get("webhook-id"), sent, body)
	for signature := range strings.FieldsSeq(header.Get("webhook-signature")) {
		got, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(signature, "v1,"))
		if err == nil && hmac.Equal(got, mac.Sum(nil)) {
			return nil
		}
	}
	return errors.New("no signature matches")
}

func TestGuide_VerifiesBothSecrets(t *testing.T) {
	t.Parallel()
	here, err := os.ReadFile("verification_guide_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, code, _ := strings.Cut(string(here), "\nfunc verify(")
	code, _, _ = strings.Cut(code, "\n}\n")
	guide, err := os.ReadFile("../../templates/guides/receive-webhooks.md")
	if err != nil || !strings.Contains(string(guide), "\nfunc verify("+code+"\n}\n") {
		t.Fatalf("the code of the guide differs from this test: %v", err)
	}
	b := start(t, quick())
	s := newSink(t, nil)
	old := b.hook(s.URL)
	rotated := b.rotate(old, time.Hour)
	b.emit(b.p, "device.connected", "")
	b.until("the message arrives", s.got(1))
	m := s.messages()[0]
	for _, secret := range []string{old.Secret, rotated.Secret} {
		if err := verify(secret, m.header, m.body); err != nil {
			t.Error(err)
		}
	}
	if verify(b.hook(s.URL).Secret, m.header, m.body) == nil ||
		verify(old.Secret, m.header, append(m.body, ' ')) == nil {
		t.Error("a wrong secret or changed body passes")
	}
}
