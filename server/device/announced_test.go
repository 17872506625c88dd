package device

import (
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// The narrow device rows have the same columns as the complete row.
func TestNarrowDeviceRowsAreComplete(t *testing.T) {
	t.Parallel()
	var d dbsqlc.Device
	row := reflect.ValueOf(&d).Elem()
	for _, field := range row.Fields() {
		fill(t, field)
	}
	for _, narrow := range []any{toAnnouncedDevice(d), deviceOfCode(toAnnouncedDevice(d))} {
		for column, field := range reflect.ValueOf(narrow).Fields() {
			if want := row.FieldByName(column.Name); !reflect.DeepEqual(field.Interface(), want.Interface()) {
				t.Errorf("%s of %T is %v, want %v", column.Name, narrow, field, want)
			}
		}
	}
}

// fill sets a column to a non-zero value of its type.
func fill(t *testing.T, field reflect.Value) {
	t.Helper()
	switch field.Interface().(type) {
	case uuid.UUID:
		field.Set(reflect.ValueOf(uuid.New()))
		return
	case time.Time:
		field.Set(reflect.ValueOf(time.Now()))
		return
	}
	switch field.Kind() {
	case reflect.Pointer:
		field.Set(reflect.New(field.Type().Elem()))
		fill(t, field.Elem())
	case reflect.Slice:
		field.Set(reflect.MakeSlice(field.Type(), 1, 1))
		fill(t, field.Index(0))
	case reflect.String:
		field.SetString(uuid.NewString())
	case reflect.Bool:
		field.SetBool(true)
	case reflect.Float64:
		field.SetFloat(4.5)
	case reflect.Int, reflect.Int32, reflect.Int64:
		field.SetInt(7)
	case reflect.Uint8:
		field.SetUint(7)
	default:
		t.Fatalf("no value of %s", field.Type())
	}
}
