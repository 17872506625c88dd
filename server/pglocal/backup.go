package pglocal

import (
	"archive/tar"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// BaseBackup copies a cluster's files while the server runs. A server that recovers from the copy makes it consistent.
// The copy includes the write-ahead log that this needs.
type BaseBackup struct {
	// Version is the version of the server, such as "15.13".
	Version string
	// Major is the major version of the server.
	Major int
	conn  *pgconn.PgConn
}

// HasData reports whether dir contains a database of any version.
func HasData(dir string) (bool, error) {
	data, err := findDataDir(dir)
	if err != nil {
		return false, fmt.Errorf("look for a database in %s: %w", dir, err)
	}
	return data.path != "", nil
}

// BaseBackup starts a backup of the whole cluster. Close ends it.
func (h *Handle) BaseBackup(ctx context.Context) (*BaseBackup, error) {
	cfg, err := pgconn.ParseConfig(h.DSN("postgres"))
	if err != nil {
		return nil, fmt.Errorf("back up the database: %w", err)
	}
	cfg.RuntimeParams["replication"] = "true"
	conn, err := pgconn.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("back up the database: %w", err)
	}
	version, _, _ := strings.Cut(conn.ParameterStatus("server_version"), " ") // "15.13 (Debian 15.13-0+deb12u1)"
	b := &BaseBackup{Version: version, conn: conn}
	if b.Major, err = leadingNumber(version); err != nil {
		return nil, errors.Join(fmt.Errorf("back up the database: its version is %q: %w", version, err), b.Close(ctx))
	}
	return b, nil
}

// Close ends the backup, complete or not.
func (b *BaseBackup) Close(ctx context.Context) error {
	return b.conn.Close(context.WithoutCancel(ctx))
}

// maxBackupWAL is the amount of log that the server keeps for a backup. The server ends a slower backup, because
// otherwise the log could fill the disk.
const maxBackupWAL = "4GB"

// Copy calls put once for each directory and file of the data directory, with its path relative to that directory.
// Progress receives a progress bar; it may be nil.
func (b *BaseBackup) Copy(ctx context.Context, progress io.Writer, put func(*tar.Header, io.Reader) error) error {
	// The slot prevents the recycling of the log during the copy. It ends with the connection.
	slot := "backup_" + strings.ToLower(rand.Text())
	if _, err := b.conn.Exec(ctx, "CREATE_REPLICATION_SLOT "+slot+" TEMPORARY PHYSICAL RESERVE_WAL").
		ReadAll(); err != nil {
		return fmt.Errorf("back up the database: keep its log: %w", err)
	}
	sql := "BASE_BACKUP (LABEL 'deviceaccess', PROGRESS, CHECKPOINT 'fast', WAL, MANIFEST 'no')"
	if b.Major < 15 {
		sql = "BASE_BACKUP LABEL 'deviceaccess' PROGRESS FAST WAL MANIFEST 'no'"
	}
	b.conn.Frontend().SendQuery(&pgproto3.Query{String: sql})
	if err := b.conn.Frontend().Flush(); err != nil {
		return fmt.Errorf("back up the database: %w", err)
	}
	s := &copyStream{
		ctx:   ctx,
		conn:  b.conn,
		typed: b.Major >= 15,
		newBar: func(size int64) *ProgressBar {
			return NewProgressBar(progress, "Copying the database", size)
		},
	}
	for files := tar.NewReader(s); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = put(header, files)
		}
		if err != nil {
			return fmt.Errorf("back up the database: %w", err)
		}
	}
	// The server reports a failed backup, such as one without its log, after the last file.
	if _, err := io.Copy(io.Discard, s); err != nil {
		return fmt.Errorf("back up the database: %w", err)
	}
	s.bar.End()
	return nil
}

// copyStream is the archive that the server sends, up to its message that the backup is complete. PostgreSQL:
// "Streaming Replication Protocol", BASE_BACKUP.
type copyStream struct {
	ctx  context.Context //nolint:containedctx // of one call of Copy
	conn *pgconn.PgConn
	// each message starts with its kind, from version 15 on
	typed  bool
	newBar func(size int64) *ProgressBar
	bar    *ProgressBar
	// result sets received: start position, sizes, end position
	results int
	copies  int
	rest    []byte
	ended   bool
}

var errTablespaces = errors.New(
	"the cluster has other tablespaces, which this backup does not support: use pg_basebackup",
)

func (s *copyStream) Read(p []byte) (int, error) {
	for len(s.rest) == 0 {
		if s.ended {
			return 0, io.EOF
		}
		if err := s.receive(); err != nil {
			return 0, err
		}
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

func (s *copyStream) receive() error {
	msg, err := s.conn.ReceiveMessage(s.ctx)
	if err != nil && s.ctx.Err() == nil {
		err = fmt.Errorf(
			"%w: the server has stopped, or has ended the backup because it was so slow that it needed more than "+
				"%s of the log",
			err,
			maxBackupWAL,
		)
	}
	if err != nil {
		return err
	}
	switch msg := msg.(type) {
	case *pgproto3.ErrorResponse:
		return pgconn.ErrorResponseToPgError(msg)
	case *pgproto3.RowDescription:
		s.results++
	case *pgproto3.DataRow:
		if s.results == 2 {
			return s.start(msg.Values)
		}
	case *pgproto3.CopyOutResponse:
		if s.copies++; s.copies > 1 {
			return errTablespaces
		}
	case *pgproto3.CopyData:
		return s.data(msg.Data)
	case *pgproto3.ReadyForQuery:
		if s.results < 3 {
			return io.ErrUnexpectedEOF
		}
		s.ended = true
	}
	return nil
}

// start reads the sizes, one row for each tablespace. Our clusters have one tablespace.
func (s *copyStream) start(row [][]byte) error {
	if s.bar != nil || len(row) < 3 || row[0] != nil {
		return errTablespaces
	}
	kilobytes, err := strconv.ParseInt(string(row[2]), 10, 64)
	if err != nil {
		kilobytes = 0 // unknown
	}
	s.bar = s.newBar(1024 * kilobytes)
	return nil
}

func (s *copyStream) data(b []byte) error {
	if s.typed {
		if len(b) == 0 {
			return io.ErrUnexpectedEOF
		}
		kind := b[0]
		switch b = b[1:]; kind {
		// a new archive; CopyOutResponse and start count tablespaces
		case 'n':
			return nil
		case 'p':
			if len(b) != 8 {
				return io.ErrUnexpectedEOF
			}
			s.bar.Add(int(int64(binary.BigEndian.Uint64(b)) - s.bar.have))
			return nil
		case 'd':
		default:
			return fmt.Errorf("the server has sent an unknown message: %q", kind)
		}
	} else {
		s.bar.Add(len(b))
	}
	s.rest = b
	return nil
}

func leadingNumber(version string) (int, error) {
	end := strings.IndexFunc(version, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		end = len(version)
	}
	return strconv.Atoi(version[:end])
}
