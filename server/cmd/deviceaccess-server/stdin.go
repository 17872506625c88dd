package main

import (
	"bufio"
	"context"
	"io"
	"os"
)

// stdin returns a reader of standard input whose reads fail once ctx is done.
func stdin(ctx context.Context) io.Reader {
	r, w := io.Pipe()
	go func() {
		_, err := io.Copy(w, os.Stdin)
		w.CloseWithError(err)
	}()
	context.AfterFunc(ctx, func() { w.CloseWithError(ctx.Err()) })
	return r
}

// answer reads one line from standard input.
func answer(ctx context.Context) (string, error) {
	return bufio.NewReader(stdin(ctx)).ReadString('\n')
}
