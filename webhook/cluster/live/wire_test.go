package live

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// answers is an API server that says the same to everyone.
type answers func(*http.Request) (contentType string, body []byte)

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	kind, body := a(r)
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {kind}}, Body: io.NopCloser(bytes.NewReader(body)), Request: r}, nil
}

// event is an event of a watch as the API server sends it.
func event(t *testing.T, contentType string, object runtime.Object) []byte {
	t.Helper()
	info, ok := runtime.SerializerInfoForMediaType(serializer.NewCodecFactory(scheme.Scheme).SupportedMediaTypes(), contentType)
	require.True(t, ok)
	encoded, err := runtime.Encode(info.Serializer, object)
	require.NoError(t, err)
	var out bytes.Buffer
	framer := info.StreamSerializer.NewFrameWriter(&out)
	require.NoError(t, info.StreamSerializer.Encode(&metav1.WatchEvent{Type: "ADDED", Object: runtime.RawExtension{Raw: encoded}}, framer))
	return out.Bytes()
}

// watched gives what a client makes of a watch's events.
func watchedBy(t *testing.T, events []byte, kind string) []watch.Event {
	t.Helper()
	config := &rest.Config{Host: "http://api", Transport: answers(func(*http.Request) (string, []byte) { return kind + ";stream=watch", events })}
	config.Wrap(Transport)
	config.ContentType = kind
	config.APIPath, config.GroupVersion, config.NegotiatedSerializer = "/api", &corev1.SchemeGroupVersion, scheme.Codecs.WithoutConversion()
	api, err := rest.RESTClientFor(config)
	require.NoError(t, err)
	w, err := api.Get().Resource("pods").VersionedParams(&metav1.ListOptions{Watch: true}, scheme.ParameterCodec).Watch(t.Context())
	require.NoError(t, err)
	var all []watch.Event
	for e := range w.ResultChan() {
		all = append(all, e)
	}
	return all
}

func TestLargeObjectsOfWatchesAreNotDecoded(t *testing.T) {
	meta := metav1.ObjectMeta{
		Namespace: "team", Name: "a", UID: "u", ResourceVersion: "7", CreationTimestamp: metav1.Unix(1, 0),
		Labels: map[string]string{"l": "v"}, Annotations: map[string]string{"a": strings.Repeat("x", 200<<10)},
	}
	small := meta
	small.Annotations = nil
	for _, contentType := range []string{runtime.ContentTypeProtobuf, runtime.ContentTypeJSON} {
		var events []byte
		for _, object := range []runtime.Object{
			&corev1.Pod{ObjectMeta: small, Spec: corev1.PodSpec{NodeName: "n", Hostname: "h"}},
			&corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{NodeName: "n", Hostname: "h"}, Status: corev1.PodStatus{Phase: corev1.PodRunning, Message: "m"}},
			&appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{MinReadySeconds: 7}},
			&corev1.ConfigMap{ObjectMeta: small},
		} {
			for gvk := range knownKinds(object) {
				object.GetObjectKind().SetGroupVersionKind(gvk)
			}
			events = append(events, event(t, contentType, object)...)
		}
		got := watchedBy(t, events, contentType)
		require.Len(t, got, 4, "%s", contentType)
		whole, ok := got[0].Object.(*corev1.Pod)
		require.True(t, ok)
		assert.Equal(t, "h", whole.Spec.Hostname)
		for _, e := range got[1:3] {
			assert.Equal(t, watch.Added, e.Type)
			object, ok := e.Object.(client.Object)
			require.True(t, ok)
			assert.True(t, isTooLarge(object))
			assert.Equal(t, []string{"team", "a", "u", "7"}, []string{object.GetNamespace(), object.GetName(), string(object.GetUID()), object.GetResourceVersion()})
			assert.Equal(t, int64(1), object.GetCreationTimestamp().Unix())
			assert.Len(t, object.GetAnnotations(), 1)
			assert.Empty(t, object.GetLabels())
		}
		if pod, ok := got[1].Object.(*corev1.Pod); assert.True(t, ok) && contentType == runtime.ContentTypeProtobuf {
			assert.Equal(t, corev1.PodSpec{NodeName: "n"}, pod.Spec)
			assert.Equal(t, corev1.PodStatus{Phase: corev1.PodRunning}, pod.Status)
		}
	}
}

func knownKinds(object runtime.Object) map[schema.GroupVersionKind]bool {
	kinds, _, _ := scheme.Scheme.ObjectKinds(object)
	return map[schema.GroupVersionKind]bool{kinds[0]: true}
}

// No bytes make the reader of a watch panic, or read without an end.
func FuzzFrames(f *testing.F) {
	f.Add(true, []byte("\x00\x00\x00\x05hello"))
	f.Add(false, []byte(`{"type":"ADDED","object":{"metadata":{"name":"a"}}}`))
	f.Fuzz(func(_ *testing.T, protobuf bool, body []byte) {
		kind := runtime.ContentTypeJSON
		if protobuf {
			kind = runtime.ContentTypeProtobuf
		}
		_, _ = io.Copy(io.Discard, newFrames(&http.Response{Header: http.Header{"Content-Type": {kind}}, Body: io.NopCloser(bytes.NewReader(body))}))
		_, _ = leastOfProtobuf(body)
		_, _ = leastOfJSON(body)
	})
}

// Pages become smaller until they are small enough, and each object comes once.
func TestLargePagesAreAskedForAgain(t *testing.T) {
	const objects = 30
	var limits []string
	config := &rest.Config{Host: "http://api", Transport: answers(func(r *http.Request) (string, []byte) {
		query := r.URL.Query()
		limits = append(limits, query.Get("limit"))
		var limit, from int
		_, _ = fmt.Sscan(query.Get("limit"), &limit)
		_, _ = fmt.Sscan(query.Get("continue"), &from)
		list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMapList"}}
		for i := from; i < min(from+limit, objects); i++ {
			list.Items = append(list.Items, unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": fmt.Sprint(i)}, "data": map[string]any{"a": strings.Repeat("x", 1<<20)},
			}})
		}
		if from+limit < objects {
			list.SetContinue(fmt.Sprint(from + limit))
		}
		body, err := list.MarshalJSON()
		assert.NoError(t, err)
		return runtime.ContentTypeJSON, body
	})}
	config.Wrap(Transport)
	api, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	var names []string
	_, err = InPages(func(limit int64, token string) (runtime.Object, error) {
		return api.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).List(t.Context(), metav1.ListOptions{Limit: limit, Continue: token})
	}, func(object runtime.Object) error {
		configMap, ok := object.(*unstructured.Unstructured)
		require.True(t, ok)
		names = append(names, configMap.GetName())
		return nil
	})
	require.NoError(t, err)
	want := make([]string, objects)
	for i := range want {
		want[i] = fmt.Sprint(i)
	}
	assert.Equal(t, want, names)
	assert.Equal(t, []string{"500", "62", "7", "1", "2"}, limits[:5])
}

// A list goes on though its state is too old.
func TestExpiredPagesGoOn(t *testing.T) {
	calls := 0
	last, err := InPages(func(_ int64, token string) (runtime.Object, error) {
		calls++
		switch token {
		case "":
			return &corev1.PodList{ListMeta: metav1.ListMeta{Continue: "old"}}, nil
		case "old":
			expired := apierrors.NewResourceExpired("too old")
			expired.ErrStatus.Continue = "new"
			return nil, expired
		default:
			return &corev1.PodList{}, nil
		}
	}, func(runtime.Object) error { return nil })
	require.NoError(t, err)
	assert.NotNil(t, last)
	assert.Equal(t, 3, calls)
	_, err = InPages(func(int64, string) (runtime.Object, error) { return nil, errors.New("fault") }, nil)
	assert.EqualError(t, err, "fault")
}
