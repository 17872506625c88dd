package chaos_test

import (
	"bytes"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"

	"github.com/deviceaccess/terraform-provider-deviceaccess/test/secretscan"
)

// logLevels are the log levels of the servers.
var logLevels = [...]string{"warn", "info", "debug"}

// tellsNoSecret searches the logs of all programs, including PostgreSQL, and a dump of the database for the PINs,
// secrets, and credentials of the storm.
func (s *storm) tellsNoSecret() {
	s.Helper()
	s.witness.mu.Lock()
	for _, r := range s.witness.seen {
		if account, of := strings.CutPrefix(r.of, "account:"); of {
			s.secrets.Learn("token", strings.TrimPrefix(account, "Bearer "))
		}
	}
	s.witness.mu.Unlock()
	master, err := os.ReadFile(filepath.Join(s.data, "master.key"))
	if err != nil {
		s.Fatal(err)
	}
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(master)))
	if err != nil {
		s.Fatal(err)
	}
	s.secrets.Learn("master key", string(raw))
	for kind, least := range map[string]int{"code": 50, "secret": 2, "credential": 1, "token": 2, "master key": 1} {
		if n := s.secrets.Count(kind); n < least {
			s.Errorf("%d of kind %s were learned, expected %d", n, kind, least)
		}
	}
	places := map[string][]byte{"a dump of the database": secretscan.Dump(s, s.database.dsn())}
	for _, i := range s.programs {
		log, err := os.ReadFile(i.log.Name())
		if err != nil {
			s.Fatal(err)
		}
		places["the logs"] = append(places["the logs"], log...)
	}
	places["the database's log"] = s.databaseLog()
	s.secrets.Search(s, places)
}

// databaseLog returns the log of PostgreSQL, including a statement with a secret that fails because of the secret.
func (s *storm) databaseLog() (log []byte) {
	s.Helper()
	secret := "'" + strings.ReplaceAll(s.key, "'", "''") + "'"
	const says = "duplicate key value violates unique constraint"
	_, err := s.pool.Exec(
		s.Context(),
		"do $$ begin create temporary table secrets (secret text primary key); insert into secrets values ("+secret+"), ("+secret+"); end $$",
	)
	if err == nil || !strings.Contains(err.Error(), says) {
		s.Fatalf("a statement that must fail: %v", err)
	}
	until(s, "PostgreSQL has logged the failed statement", func() bool {
		if log, err = os.ReadFile(s.database.log.Name()); err != nil {
			s.Fatal(err)
		}
		return bytes.Contains(log, []byte(says+` \"secrets_pkey`)) || bytes.Contains(log, []byte(says+` "secrets_pkey`))
	})
	return log
}
