package prepull_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"warmpool.sh/webhook/prepull"
)

func TestRecordOf(t *testing.T) {
	tests := []struct {
		name              string
		images, templates string
		want              prepull.Record
	}{
		{name: "one", images: "r/nb:1", templates: "shared/a", want: sources("a r/nb:1")},
		{name: "two of one image", images: "r/nb:1,r/nb:1", templates: "shared/a,shared/b", want: sources("a r/nb:1", "b r/nb:1")},
		{name: "one that was never known", images: ",r/nb:1", templates: "shared/a,shared/b", want: sources("a", "b r/nb:1")},
		{name: "none"},
		{name: "templates alone", templates: "shared/a"},
		{name: "images alone", images: "r/nb:1,r/nb:2"},
		{name: "fewer templates", images: "r/nb:1,r/nb:2", templates: "shared/a"},
		{name: "more templates", images: "r/nb:1", templates: "shared/a,shared/b"},
		{name: "commas", images: ",,", templates: "shared/a,shared/b,shared/c"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			annotations := map[string]string{prepull.SyncedImage: test.images, prepull.SyncedTemplate: test.templates}
			record := prepull.RecordOf(annotations)
			assert.Equal(t, test.want, record)
			if record != nil {
				assert.Equal(t, annotations, record.Annotations())
			}
		})
	}
	assert.Nil(t, prepull.RecordOf(nil))
}

// Garbage in a record gives no image to a container.
func TestHostileRecord(t *testing.T) {
	for _, images := range []string{"a b", " r/nb:1", "://", "\x00", "sha256:", "R/NB"} {
		record := prepull.RecordOf(map[string]string{prepull.SyncedImage: images, prepull.SyncedTemplate: "shared/a"})
		assert.Equal(t, []string{"r/nb:0"}, prepull.Images(sources("a"), record, []string{"r/nb:0"}), "%q", images)
		assert.Nil(t, prepull.NewRecord(sources("a"), record), "%q", images)
	}
	templates := prepull.RecordOf(map[string]string{prepull.SyncedImage: "r/x:1,r/y:1,r/z:1", prepull.SyncedTemplate: "/,a,shared/a/b"})
	assert.Equal(t, []string{"r/nb:0"}, prepull.Images(sources("a"), templates, []string{"r/nb:0"}))
}

func TestNewRecord(t *testing.T) {
	tests := []struct {
		name         string
		sources      []prepull.Source
		before, want prepull.Record
	}{
		{name: "known", sources: sources("a r/nb:2", "b r/x:1"), before: sources("a r/nb:1"), want: sources("a r/nb:2", "b r/x:1")},
		{name: "deleted", sources: sources("a", "b r/x:2"), before: sources("a r/nb:1", "a r/nb:2", "b r/x:1"), want: sources("a r/nb:1", "a r/nb:2", "b r/x:2")},
		{name: "one image of several", sources: sources("a r/nb:2", "a", "a r/z:2"), before: sources("a r/nb:1", "a r/y:1", "a r/z:1"), want: sources("a r/nb:2", "a r/y:1", "a r/z:2")},
		{name: "never known", sources: sources("a", "b r/x:1"), want: sources("a", "b r/x:1")},
		{name: "nothing ever known", sources: sources("a", "b")},
		{name: "no longer of the pool", sources: sources("b r/x:1"), before: sources("a r/nb:1"), want: sources("b r/x:1")},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := prepull.NewRecord(test.sources, test.before)
			assert.Equal(t, test.want, got)
			assert.Equal(t, got, prepull.NewRecord(test.sources, got), "again")
			assert.Equal(t, got, prepull.RecordOf(got.Annotations()), "written and read")
		})
	}
}

func TestCovers(t *testing.T) {
	record := prepull.Record(sources("a r/nb:1", "b r/x:1", "c r/nb:1", "d"))
	assert.True(t, record.Covers([]string{"r/nb:1", "r/x:1"}))
	assert.True(t, record.Covers([]string{"r/x:1", "r/nb:1"}))
	assert.False(t, record.Covers([]string{"r/nb:1"}), "one is missing")
	assert.False(t, record.Covers([]string{"r/nb:1", "r/x:1", "r/y:1"}), "one is too many")
	assert.False(t, record.Covers([]string{"r/nb:1", "r/x:1", ""}), "one is empty")
	assert.False(t, record.Covers(nil))
	assert.False(t, prepull.Record(nil).Covers(nil), "no record covers nothing")
	assert.False(t, prepull.Record(sources("a")).Covers(nil))
}
