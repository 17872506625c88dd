package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/admission"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

const (
	maxRowsInMemory = 1000 // rows in memory at a time
	maxPageRows     = 1000 // rows of a page, unless its default limit is larger
)

// capLimit caps the limit of a page. Further rows are on the next page.
func (o *operation) capLimit(limit int) int {
	if limit <= maxPageRows {
		return limit
	}
	most := maxPageRows
	for _, p := range o.body.properties {
		if n, err := strconv.Atoi(string(p.fallback)); p.name == "limit" && err == nil {
			most = max(most, n)
		}
	}
	return min(limit, most)
}

// rows streams the rows of a page. The first part has been read.
type rows struct {
	ctx   context.Context
	names []string      // names of the lists in the response
	head  *bytes.Buffer // the start of the response
	first part
	limit int
	still func(context.Context) error // fails if the caller has lost access
	read  func(ctx context.Context, to *bytes.Buffer, after domain.Position, limit int) (part, error)
}

// part is a part of the rows of a page.
type part struct {
	text []byte // JSON, separated by commas
	n    int
	last domain.Position
	more bool // more rows follow
}

// streamRows reads the first part of a page, for a response that has its rows under each of the names. Before each
// further part, still checks that the caller has access.
func streamRows[A, B any](
	ctx context.Context,
	page domain.Page,
	still func(context.Context) error,
	read func(context.Context, domain.Page) ([]A, bool, error),
	at func(A) (time.Time, uuid.UUID),
	show func(A) B,
	names ...string,
) (r rows, err error) {
	r = rows{
		ctx:   ctx,
		limit: page.Limit,
		still: still,
		names: names,
		head:  bytes.NewBufferString(`{"` + names[0] + `":[`),
	}
	r.read = func(ctx context.Context, to *bytes.Buffer, after domain.Position, limit int) (p part, err error) {
		list, more, err := read(ctx, domain.Page{After: after, Limit: min(limit, maxRowsInMemory)})
		if err != nil {
			return p, err
		}
		begin, out := to.Len(), json.NewEncoder(to)
		for i, one := range list {
			if i > 0 {
				to.WriteByte(',')
			}
			if err := out.Encode(show(one)); err != nil {
				return p, err
			}
			to.Truncate(to.Len() - 1) // the newline
		}
		return part{to.Bytes()[begin:], len(list), lastPosition(list, at), more}, nil
	}
	r.first, err = r.read(ctx, r.head, page.After, r.limit)
	return r, err
}

// streamRest streams the other parts, each after the client has read the previous one. So memory does not depend on the
// length of the list or the speed of the client. It returns the last part, or an error if the caller has lost access.
func (r rows) streamRest(w io.Writer) (last part, err error) {
	last = r.first
	for left := r.limit - last.n; last.more && left > 0; left -= last.n {
		text := bytes.NewBufferString(",")
		ctx, cancel := context.WithTimeout(
			context.WithoutCancel(r.ctx),
			requestTimeout,
		) // per part, so that slow readers are served
		var next part
		err := admission.Reacquire(ctx, func() (err error) {
			if err := r.still(ctx); err != nil {
				return err
			}
			next, err = r.read(ctx, text, last.last, left)
			return err
		})
		cancel()
		if err != nil {
			return last, err
		}
		if next.n == 0 { // the remaining rows were deleted in the meantime
			last.more = false
			return last, nil
		}
		if _, err := w.Write(text.Bytes()); err != nil {
			return last, err
		}
		last = next
	}
	return last, nil
}

// answer writes the rows, and the fields that end returns for the last part.
func (r rows) answer(w http.ResponseWriter, end func(part) any) (err error) {
	w.Header().Set("Content-Type", jsonUTF8)
	last, out := r.first, r.head
	long := r.first.more && r.first.n < r.limit
	for i, name := range r.names {
		if i > 0 {
			out.WriteString(`],"` + name + `":[`)
			out.Write(r.first.text)
		}
		if !long {
			continue
		}
		if _, err := w.Write(out.Bytes()); err != nil {
			return err
		}
		out = &bytes.Buffer{}
		if last, err = r.streamRest(w); err != nil {
			return err
		}
	}
	rest, err := json.Marshal(end(last))
	if err != nil {
		return err
	}
	out.WriteString("],")
	out.Write(rest[1:])
	out.WriteByte('\n')
	_, err = w.Write(out.Bytes())
	return err
}

// paged has the fields of a page other than its rows.
type paged struct {
	Ok         bool           `json:"ok"`
	Pagination api.Pagination `json:"pagination"`
}

// longPage is the response of a list with pages that can be long.
type longPage struct {
	rows
	page page
}

func (l longPage) write(w http.ResponseWriter) error {
	return l.answer(w, func(last part) any { return paged{true, l.page.pagination(last.more, last.last)} })
}

func (l longPage) VisitListDevicesResponse(w http.ResponseWriter) error { return l.write(w) }

func (l longPage) VisitListUnmanagedDevicesResponse(w http.ResponseWriter) error { return l.write(w) }

func (l longPage) VisitListAccessCodesResponse(w http.ResponseWriter) error { return l.write(w) }

func (l longPage) VisitListUnmanagedAccessCodesResponse(w http.ResponseWriter) error {
	return l.write(w)
}
