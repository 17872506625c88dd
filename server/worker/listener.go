package worker

import (
	"context"
	"errors"

	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
)

// queueDriver is River's driver with listeners that reconnect after a failover of the database.
type queueDriver struct {
	*riverpgxv5.Driver
	db *store.DB
}

// GetListener implements riverdriver.Driver.
func (d queueDriver) GetListener(params *riverdriver.GetListenenerParams) riverdriver.Listener {
	return &listener{Listener: d.Driver.GetListener(params), db: d.db}
}

// listener holds a connection outside of the pool, which the pool does not replace.
type listener struct {
	riverdriver.Listener
	db    *store.DB
	epoch context.Context // of the connection
}

// errFailover ends a listener's connection. The job queue then opens another one.
var errFailover = errors.New("the connections are replaced after a failover of the database")

// Connect implements riverdriver.Listener.
func (l *listener) Connect(ctx context.Context) error {
	l.epoch = l.db.Epoch()
	return l.Listener.Connect(ctx)
}

// WaitForNotification implements riverdriver.Listener. It returns an error when the connection must be replaced.
func (l *listener) WaitForNotification(ctx context.Context) (*riverdriver.Notification, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(l.epoch, func() { cancel(errFailover) })()
	n, err := l.Listener.WaitForNotification(ctx)
	if err != nil && errors.Is(context.Cause(ctx), errFailover) {
		return nil, errFailover // not context.Canceled, which ends the listener
	}
	return n, err
}
