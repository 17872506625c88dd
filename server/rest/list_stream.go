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
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/admission"
)

const (
	mostAtOnce = 1000 // rows of a list that are in memory at a time
	mostRows   = 1000 // of a page, or as many as it has unless another limit is given
)

// bounded is a page's limit as it is kept: how much is in memory is not for callers to say. What is beyond is on the next page.
func (o *operation) bounded(limit int) int {
	if limit <= mostRows {
		return limit
	}
	most := mostRows
	for _, p := range o.body.properties {
		if n, err := strconv.Atoi(string(p.fallback)); p.name == "limit" && err == nil {
			most = max(most, n)
		}
	}
	return min(limit, most)
}

// rows are those of a page, of which the first have been read.
type rows struct {
	ctx   context.Context
	names []string      // of the lists that have them
	begun *bytes.Buffer // the answer as far as it is known
	first part
	limit int
	still func(context.Context) error // fails when the caller may not see any more of them
	read  func(ctx context.Context, to *bytes.Buffer, after access.Position, limit int) (part, error)
}

// part is some of the rows of a page.
type part struct {
	text []byte // JSON, with a comma between two
	n    int
	last access.Position
	more bool // another follows
}

// inParts reads the first part of a page, for an answer that has its rows under each of the names. Before each other part still says
// whether the caller may see more.
func inParts[A, B any](ctx context.Context, page access.Page, still func(context.Context) error, read func(context.Context, access.Page) ([]A, bool, error),
	at func(A) (time.Time, uuid.UUID), show func(A) B, names ...string) (r rows, err error) {
	r = rows{ctx: ctx, limit: page.Limit, still: still, names: names, begun: bytes.NewBufferString(`{"` + names[0] + `":[`)}
	r.read = func(ctx context.Context, to *bytes.Buffer, after access.Position, limit int) (p part, err error) {
		list, more, err := read(ctx, access.Page{After: after, Limit: min(limit, mostAtOnce)})
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
			to.Truncate(to.Len() - 1) // the end of the line
		}
		return part{to.Bytes()[begin:], len(list), lastOf(list, at), more}, nil
	}
	r.first, err = r.read(ctx, r.begun, page.After, r.limit)
	return r, err
}

// rest writes the other parts, each once the one before has been taken: however long the list is and however slowly its caller
// reads, it takes no more memory. It returns the last one. It fails when the caller may not see more.
func (r rows) rest(w io.Writer) (last part, err error) {
	last = r.first
	for left := r.limit - last.n; last.more && left > 0; left -= last.n {
		text := bytes.NewBufferString(",")
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), answerWithin) // of this part: whoever reads slowly is served
		var next part
		err := admission.Again(ctx, func() (err error) {
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
		if next.n == 0 { // the others were deleted meanwhile
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

// answer writes the rows, and what else there is, which end says from the last part.
func (r rows) answer(w http.ResponseWriter, end func(part) any) (err error) {
	w.Header().Set("Content-Type", jsonUTF8)
	last, out := r.first, r.begun
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
		if last, err = r.rest(w); err != nil {
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

// paged is what a page has beside its rows.
type paged struct {
	Ok         bool           `json:"ok"`
	Pagination api.Pagination `json:"pagination"`
}

// longPage is the answer of a list with pages that may be long.
type longPage struct {
	rows
	page page
}

func (l longPage) write(w http.ResponseWriter) error {
	return l.answer(w, func(last part) any { return paged{true, l.page.pagination(last.more, last.last)} })
}

func (l longPage) VisitListDevicesResponse(w http.ResponseWriter) error          { return l.write(w) }
func (l longPage) VisitListUnmanagedDevicesResponse(w http.ResponseWriter) error { return l.write(w) }
func (l longPage) VisitListAccessCodesResponse(w http.ResponseWriter) error      { return l.write(w) }
func (l longPage) VisitListUnmanagedAccessCodesResponse(w http.ResponseWriter) error {
	return l.write(w)
}
