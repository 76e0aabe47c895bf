//===- Streams.cpp - Streams, events and graphs of the C interface ------------------------------------------------===//
#include "ditron/api/Handles.h"

using namespace ditron;
using namespace ditron::api;

namespace {

/// The rank of a context that the calling thread may use.
Expected<runtime::Rank *> rankOf(ditron_context_h context, uint32_t rank) {
  DITRON_RETURN_IF_ERROR(checkGiven(context, "the context"));
  DITRON_RETURN_IF_ERROR(context->state->checkThread());
  return context->state->rank(rank);
}

} // namespace

extern "C" {

ditron_status_t ditron_stream_create(ditron_context_h context, uint32_t rank, const char *name,
                                     ditron_stream_h *stream) {
  return guarded([&]() -> Status {
    DITRON_RETURN_IF_ERROR(checkGiven(stream, "the place of the result"));
    DITRON_ASSIGN_OR_RETURN(runtime::Rank * owner, rankOf(context, rank));
    DITRON_ASSIGN_OR_RETURN(runtime::Stream made, owner->createStream(name ? name : "stream"));
    *stream = new ditron_stream{context->state, context->state->world(), std::move(made)};
    return Status::ok();
  });
}

ditron_status_t ditron_stream_adopt(ditron_context_h context, uint32_t rank, void *native, ditron_stream_h *stream) {
  return guarded([&]() -> Status {
    DITRON_RETURN_IF_ERROR(checkGiven(stream, "the place of the result"));
    DITRON_ASSIGN_OR_RETURN(runtime::Rank * owner, rankOf(context, rank));
    DITRON_ASSIGN_OR_RETURN(runtime::Stream made,
                            runtime::Stream::adopt(owner->device(), owner->id(), owner->worldView(), native));
    *stream = new ditron_stream{context->state, context->state->world(), std::move(made)};
    return Status::ok();
  });
}

void ditron_stream_destroy(ditron_stream_h stream) { delete stream; }

void *ditron_stream_native(ditron_stream_h stream) {
  return stream && !stream->context->isSimulated() ? reinterpret_cast<void *>(stream->stream.nativeHandle()) : nullptr;
}

ditron_status_t ditron_stream_synchronize(ditron_stream_h stream) {
  return guarded([&]() -> Status {
    DITRON_RETURN_IF_ERROR(checkHandle(stream, "stream"));
    return stream->stream.synchronize();
  });
}

ditron_status_t ditron_event_create(ditron_context_h context, uint32_t rank, ditron_event_h *event) {
  return guarded([&]() -> Status {
    DITRON_RETURN_IF_ERROR(checkGiven(event, "the place of the result"));
    DITRON_ASSIGN_OR_RETURN(runtime::Rank * owner, rankOf(context, rank));
    DITRON_ASSIGN_OR_RETURN(runtime::Event made, owner->createEvent());
    *event = new ditron_event{context->state, context->state->world(), std::move(made)};
    return Status::ok();
  });
}

void ditron_event_destroy(ditron_event_h event) { delete event; }

ditron_status_t ditron_event_record(ditron_event_h event, ditron_stream_h stream) {
  return guarded([&]() -> Status {
    DITRON_RETURN_IF_ERROR(checkHandle(event, "event"));
    DITRON_RETURN_IF_ERROR(checkHandle(stream, "stream"));
    DITRON_RETURN_IF_ERROR(checkTogether(*event->context, "event", *stream));
    return stream->stream.record(event->event);
  });
}

ditron_status_t ditron_event_wait(ditron_event_h event, ditron_stream_h stream) {
  return guarded([&]() -> Status {
    DITRON_RETURN_IF_ERROR(checkHandle(event, "event"));
    DITRON_RETURN_IF_ERROR(checkHandle(stream, "stream"));
    DITRON_RETURN_IF_ERROR(checkTogether(*event->context, "event", *stream));
    return stream->stream.wait(event->event);
  });
}

ditron_status_t ditron_event_synchronize(ditron_event_h event) {
  return guarded([&]() -> Status {
    DITRON_RETURN_IF_ERROR(checkHandle(event, "event"));
    return event->event.synchronize();
  });
}

ditron_status_t ditron_event_elapsed(ditron_event_h begin, ditron_event_h end, double *microseconds) {
  return guarded([&]() -> Status {
    DITRON_RETURN_IF_ERROR(checkHandle(begin, "event"));
    DITRON_RETURN_IF_ERROR(checkHandle(end, "event"));
    DITRON_RETURN_IF_ERROR(checkGiven(microseconds, "the place of the result"));
    if (&begin->context->root() != &end->context->root())
      return invalidArgument("the two events are of different contexts");
    DITRON_ASSIGN_OR_RETURN(const int64_t picoseconds, end->event.elapsedSince(begin->event));
    *microseconds = static_cast<double>(picoseconds) * 1e-6;
    return Status::ok();
  });
}

ditron_status_t ditron_capture_begin(ditron_stream_h stream) {
  return guarded([&]() -> Status {
    DITRON_RETURN_IF_ERROR(checkHandle(stream, "stream"));
    return stream->stream.beginCapture();
  });
}

ditron_status_t ditron_capture_end(ditron_stream_h stream, ditron_graph_h *graph) {
  return guarded([&]() -> Status {
    DITRON_RETURN_IF_ERROR(checkHandle(stream, "stream"));
    DITRON_RETURN_IF_ERROR(checkGiven(graph, "the place of the result"));
    DITRON_ASSIGN_OR_RETURN(runtime::Graph made, stream->stream.endCapture());
    *graph = new ditron_graph{stream->context, stream->world, std::move(made)};
    return Status::ok();
  });
}

ditron_status_t ditron_graph_launch(ditron_graph_h graph, ditron_stream_h stream) {
  return guarded([&]() -> Status {
    DITRON_RETURN_IF_ERROR(checkHandle(graph, "graph"));
    DITRON_RETURN_IF_ERROR(checkHandle(stream, "stream"));
    DITRON_RETURN_IF_ERROR(checkTogether(*graph->context, "graph", *stream));
    return stream->stream.launch(graph->graph);
  });
}

void ditron_graph_destroy(ditron_graph_h graph) { delete graph; }

ditron_status_t ditron_copy(ditron_stream_h stream, void *destination, const void *source, uint64_t bytes) {
  return guarded([&]() -> Status {
    DITRON_RETURN_IF_ERROR(checkHandle(stream, "stream"));
    runtime::Copy copy;
    copy.destination = destination;
    copy.source = source;
    copy.rowBytes = bytes;
    return stream->stream.copy(copy);
  });
}

ditron_status_t ditron_fill(ditron_stream_h stream, void *destination, uint8_t value, uint64_t bytes) {
  return guarded([&]() -> Status {
    DITRON_RETURN_IF_ERROR(checkHandle(stream, "stream"));
    return stream->stream.fill({destination, DataType::U8}, value, bytes);
  });
}

} // extern "C"
