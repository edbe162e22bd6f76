"""Repair of text that is not UTF-8: one bad attribute must not cost a whole batch.

Protobuf refuses a message with such a string. The same bytes parse against a copy of the
protocol's descriptors in which every string is a bytes field; there they can be mended.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor import Descriptor, FieldDescriptor, FileDescriptor
from google.protobuf.message import DecodeError, Message


def repaired(body: bytes, message_type: type[Message]) -> bytes | None:
    """Return ``body`` with malformed text replaced by U+FFFD.

    Args:
        body: A message that protobuf refused.
        message_type: What it should be.

    Returns:
        A body that parses, or None if text is not what is wrong with it.
    """
    message = _lenient(message_type.DESCRIPTOR)()
    try:
        message.ParseFromString(body)
    except DecodeError:
        return None
    _mend(message)
    mended: bytes = message.SerializeToString()
    return mended


def _mend(message: Message) -> None:
    for field, value in message.ListFields():
        if field.type == FieldDescriptor.TYPE_MESSAGE:
            for child in value if field.is_repeated else (value,):
                _mend(child)
        elif field.type == FieldDescriptor.TYPE_BYTES and field.name not in _REAL_BYTES:
            if field.is_repeated:
                value[:] = [_text(item) for item in value]
            else:
                setattr(message, field.name, _text(value))


_REAL_BYTES = frozenset({"trace_id", "span_id", "parent_span_id", "bytes_value"})


def _text(raw: bytes) -> bytes:
    return raw.decode("utf-8", "replace").encode()


@cache
def _lenient(original: Descriptor) -> Any:
    """Return the class of the same message with bytes for strings."""
    pool = descriptor_pool.DescriptorPool()
    _add(pool, original.file, set())
    descriptor = pool.FindMessageTypeByName(original.full_name)
    return message_factory.GetMessageClass(descriptor)


def _add(pool: descriptor_pool.DescriptorPool, file: FileDescriptor, done: set[str]) -> None:
    if file.name in done:
        return
    done.add(file.name)
    for dependency in file.dependencies:
        _add(pool, dependency, done)
    copy = descriptor_pb2.FileDescriptorProto()
    file.CopyToProto(copy)
    for message in copy.message_type:
        _strings_to_bytes(message)
    pool.Add(copy)


def _strings_to_bytes(message: descriptor_pb2.DescriptorProto) -> None:
    for field in message.field:
        if field.type == descriptor_pb2.FieldDescriptorProto.TYPE_STRING:
            field.type = descriptor_pb2.FieldDescriptorProto.TYPE_BYTES
    for nested in message.nested_type:
        _strings_to_bytes(nested)
