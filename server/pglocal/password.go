package pglocal

import (
	"context"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	passwordName = "password"
	hbaName      = "pg_hba.conf"
)

// Client authentication, in place of the file in the data directory. Trust lasts while the server gets a password.
const (
	hbaPassword = "local all all scram-sha-256\nlocal replication all scram-sha-256\n"
	hbaTrust    = "local all all trust\n"
)

// readPassword returns the password of the cluster in dir. Only the user that starts the cluster can read it, which as
// root is not the server's user.
func readPassword(dir string) (string, error) {
	b, err := os.ReadFile(filepath.Join(dir, passwordName))
	if err != nil {
		return "", fmt.Errorf("read the password of the database: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
}

// prepareAuthentication creates the password if there is none, and lets the server ask for it.
func (c *Cluster) prepareAuthentication(context.Context) (err error) {
	c.password, err = readPassword(c.opt.Dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && c.password == "" {
		c.password = rand.Text()
		err = replaceFile(filepath.Join(c.opt.Dir, passwordName), c.password+"\n", 0o600)
	}
	if err != nil {
		return err
	}
	return c.writeHBA(hbaPassword)
}

func (c *Cluster) hbaPath() string { return filepath.Join(c.opt.Dir, hbaName) }

func (c *Cluster) writeHBA(text string) error { return replaceFile(c.hbaPath(), text, 0o644) }

// replaceFile replaces a file at once, with a mode that our umask does not change.
func replaceFile(path, text string, mode fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	_, err = f.WriteString(text)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, errors.Join(err, os.Remove(f.Name())))
	}
	return nil
}

// logIn connects to the server that was started. A new cluster, one of a version that trusted every connection, and a
// restored one do not have the password yet.
func (c *Cluster) logIn(ctx context.Context) error {
	err := ping(ctx, c.DSN("postgres"))
	if !isRefusedPassword(err) {
		return err
	}
	if err := c.setPassword(ctx); err != nil {
		return fmt.Errorf("set the password of the database: %w", err)
	}
	return ping(ctx, c.DSN("postgres"))
}

func isRefusedPassword(err error) bool {
	refused, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (refused.Code == "28P01" || refused.Code == "28000") // invalid_password, invalid_authorization
}

func (c *Cluster) setPassword(ctx context.Context) error {
	if err := c.writeHBA(hbaTrust); err != nil {
		return err
	}
	conn, err := c.reloaded(ctx, func(err error) bool { return err == nil })
	if err == nil {
		_, err = conn.Exec(ctx, "alter role postgres password '"+verifier(c.password)+"'")
		err = errors.Join(err, conn.Close(context.WithoutCancel(ctx)))
	}
	if err := errors.Join(err, c.writeHBA(hbaPassword)); err != nil {
		return err
	}
	_, err = c.reloaded(ctx, isRefusedPassword)
	return err
}

// reloaded lets the server read its files again, and connects without the password until the outcome is as expected.
func (c *Cluster) reloaded(ctx context.Context, expected func(error) bool) (*pgx.Conn, error) {
	if err := c.proc.signal(syscall.SIGHUP); err != nil {
		return nil, err
	}
	for {
		conn, err := pgx.Connect(ctx, dsn(c.socket, "postgres", "none"))
		if expected(err) {
			return conn, nil
		}
		if err == nil {
			err = conn.Close(ctx)
		} else if isRefusedPassword(err) {
			err = nil
		}
		if err != nil {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-c.proc.done:
			return nil, c.proc.err
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// verifier returns what the database stores of a password (PostgreSQL: "pg_authid", rolpassword). The password is
// random and long, so more iterations would only slow each connection down.
func verifier(password string) string {
	const iterations = 1
	salt := make([]byte, 16)
	rand.Read(salt)
	salted, err := pbkdf2.Key(sha256.New, password, salt, iterations, sha256.Size)
	if err != nil {
		panic(err) // it checks lengths, which are constant
	}
	mac := func(text string) []byte {
		h := hmac.New(sha256.New, salted)
		h.Write([]byte(text))
		return h.Sum(nil)
	}
	stored := sha256.Sum256(mac("Client Key"))
	text := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("SCRAM-SHA-256$%d:%s$%s:%s", iterations, text(salt), text(stored[:]), text(mac("Server Key")))
}
